"""The informers of a controller and the objects that they cache."""
