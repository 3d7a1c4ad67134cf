"""Preparing a downgrade: workload references become pod references under running pods.

``prepare.run_plan`` carries out a DowngradePlan, in the controller or with an administrator's
own rights; ``plans`` is the plan's life as the command sees it.
"""
