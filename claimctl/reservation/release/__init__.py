"""The steps of a release, and the objects before and after an allocation."""
