"""The demonstration: a story on an embedded cluster, with the real controller."""
