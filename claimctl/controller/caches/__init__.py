"""The informers of a controller and what they keep."""
