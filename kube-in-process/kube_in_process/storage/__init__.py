"""The storage: every revision of every object, and the options of requests."""
