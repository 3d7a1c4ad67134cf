"""The defaults of the kinds, one file per family."""
