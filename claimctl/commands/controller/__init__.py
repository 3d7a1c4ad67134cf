"""``claimctl controller``: the controller as a process."""
