"""Who sends a request, what that user may do, and access reviews."""
