"""The shell around ``claimctl.rescheduling``: it reads the cluster and the policy, and acts."""
