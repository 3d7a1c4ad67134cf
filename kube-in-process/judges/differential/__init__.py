"""Compares the embedded cluster with a real control plane, on the same requests and actions."""
