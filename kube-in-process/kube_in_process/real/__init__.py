"""Real control planes and nodes for tests: what envtest is for Go."""
