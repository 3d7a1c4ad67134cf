"""What the cluster keeps: every revision of every object, and how a list is asked of it."""
