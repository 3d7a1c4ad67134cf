"""Programs that prove and measure ``claimctl reschedule``."""
