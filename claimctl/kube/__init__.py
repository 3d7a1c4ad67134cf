"""The client side of a Kubernetes API server: requests, watches, caches, queues and leases."""
