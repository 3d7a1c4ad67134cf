"""Prepare a downgrade: replace workload references by pod references while the pods run.

A DowngradePlan says which claims (``scope``), and its status has a record of each (``records``).

To carry a plan out, as controllers do: ``carry_out`` chooses between ``prepare`` and ``restore``,
the way back. Both are a ``run``, read the ``pods`` of many claims at once, and write claim by
claim. What a list becomes is decided without requests: for ``prepare`` in ``expansion``, which
``expander`` writes, for ``restore`` in ``restoration``. Before an upgrade, PodGroups go first
(``departure``, ``crossing``).

To say how far a downgrade is: ``look`` reads the cluster, ``standing`` judges each claim and
``sightings`` each component, and ``status`` says what is next. ``under_way`` has the words for
other commands.

``plans`` is for commands: they begin a plan, and follow what a controller makes of it.

What sends requests raises KubeError if one fails; docstrings say what else is raised.
"""
