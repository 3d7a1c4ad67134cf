"""Random clusters for ``claimctl reschedule``: a dry run, a real run, and what came of it."""
