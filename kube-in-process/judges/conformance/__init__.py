"""Replays recordings of real API servers against the embedded one."""
