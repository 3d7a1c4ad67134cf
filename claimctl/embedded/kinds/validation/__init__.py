"""What the server refuses and how it prepares objects, one file per family of kinds."""
