"""Helpers of the tests of ``claimctl reschedule``."""
