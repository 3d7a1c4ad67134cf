"""The demonstration: an embedded cluster, the real controller beside it, and a story to watch."""
