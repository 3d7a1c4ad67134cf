"""The shell around ``claimctl.reschedule.plan``: it reads the cluster and the policy, and acts."""
