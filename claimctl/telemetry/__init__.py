"""Traces, metrics, logs and health. Only commands import modules other than ``face``."""
