"""Requests and answers of the API server, from the path to the bytes."""
