"""Moves pods to better nodes: ``claimctl reschedule``. The controller has no part in it."""
