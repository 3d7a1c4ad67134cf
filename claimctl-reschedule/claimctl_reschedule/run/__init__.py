"""The shell around ``claimctl_reschedule.plan``: it reads the cluster and the policy, and acts.

What sends requests raises KubeError if one fails; docstrings say what else is raised.
"""
