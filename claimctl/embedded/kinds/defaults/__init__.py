"""What the server fills in, one file per family of kinds."""
