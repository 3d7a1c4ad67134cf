"""Releases beside a real scheduler that takes long to bind the pods that it works on."""
