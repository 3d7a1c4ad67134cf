"""Random schedules of a workload whose kind claimctl knows by a rule alone."""
