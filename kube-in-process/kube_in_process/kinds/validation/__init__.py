"""The validation and preparation of objects, one file per family of kinds."""
