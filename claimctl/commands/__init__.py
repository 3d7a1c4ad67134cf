"""The commands: one folder a feature. ``claimctl.cli`` is the shell that they have in common.

What sends requests raises KubeError if one fails; docstrings say what else is raised.
"""
