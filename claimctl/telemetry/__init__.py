"""Traces, metrics, logs and health. Everything but ``face`` is loaded by commands only."""
