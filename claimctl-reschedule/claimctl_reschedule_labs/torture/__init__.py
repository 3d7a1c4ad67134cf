"""Runs of ``claimctl reschedule`` beside the schedules of torture."""
