"""What a server publishes about itself: discovery, OpenAPI, its version."""
