"""The controller of Jobs."""
