"""Measurements of memory and time, each beside what a user would otherwise pick."""
