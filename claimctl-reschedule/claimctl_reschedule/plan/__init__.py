"""Decide which pods to move to other nodes. Pure: no I/O, and the time is part of the input.

``planning.plan(observed, policy)`` gives one ``Plan``. ``observed`` has everything that one run
has read, and ``policy`` has what the user wants. The same input always gives the same plan.

The strategies propose moves on a ``World``, a model of the cluster in memory. A move that is chosen
counts there at once, so that the next decision sees its effect.
"""
