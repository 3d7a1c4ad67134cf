"""Moves pods to better nodes: ``claimctl reschedule``. The controller has no part in it."""

__version__ = "0.1.0"
