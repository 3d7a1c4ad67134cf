"""The kinds, with their defaults and validation."""
