"""The command ``claimctl reschedule``."""
