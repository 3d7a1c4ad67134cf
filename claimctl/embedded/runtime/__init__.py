"""What every emulated component stands on: views, a queue of keys, and its own API."""
