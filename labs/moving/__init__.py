"""Measures on real servers where a pod with claims goes that is evicted."""
