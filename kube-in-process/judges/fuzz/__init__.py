"""Requests that nobody would write, at random, against the embedded API server."""
