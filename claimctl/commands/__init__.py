"""The commands: one folder a feature. ``claimctl.cli`` is the shell that they have in common."""
