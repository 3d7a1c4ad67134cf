"""Prepare a downgrade: replace workload references by pod references while the pods run.

What sends requests raises KubeError if one fails; docstrings say what else is raised.
``carry_out`` is for controllers: it carries out a DowngradePlan. ``plans`` is for the commands,
which begin a plan and follow what a controller makes of it.
"""
