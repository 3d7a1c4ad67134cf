"""Prepare a downgrade: replace workload references by pod references while the pods run.

A DowngradePlan says which claims (``scope``), and its status has a record of each (``records``).

To carry a plan out, as controllers do: ``carry_out`` chooses between ``prepare`` and ``restore``,
the way back. Both are a ``plan_run``, read the ``pods`` of many claims at once, and write claim by
claim. What a list becomes is decided without requests: for ``prepare`` in ``expansion``, which
``expander`` writes, for ``restore`` in ``restoration``. Before an upgrade, PodGroups go first
(``departure``, ``crossing``).

For commands: ``plans`` begins a plan, and follows what a controller makes of it. ``under_way`` has
the words for a plan, and its next command. How far a downgrade is, ``claimctl.commands.downgrade``
finds out.

What sends requests raises KubeError if one fails; docstrings say what else is raised.
"""
