"""Prepare a downgrade: replace workload references by pod references while the pods run.

What sends requests raises KubeError if one fails; docstrings say what else is raised.
``prepare.run_plan`` carries out a DowngradePlan. The controller calls it, or the command does with
the rights of the administrator. ``plans`` is for the command: begin, carry out or follow a plan.
"""
