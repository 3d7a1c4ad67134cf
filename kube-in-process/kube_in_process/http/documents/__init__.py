"""Documents about the server: discovery, OpenAPI, its version."""
