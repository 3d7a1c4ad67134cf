"""The base of every emulated component: views, a queue of keys, and its own API client."""
