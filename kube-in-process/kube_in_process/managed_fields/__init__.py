"""Managed fields, and server-side apply."""
