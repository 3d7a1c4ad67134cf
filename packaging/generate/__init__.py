"""Generates files from other files of the repository: ``python -m generate``."""
