"""The reconcilers and the manager that runs them.

The way of the data: a change in a cache -> a key in a queue -> a snapshot -> a decision (pure,
in ``claimctl.reservation``) -> at most one write -> event, span, metric. ``manager.Manager`` is
the way in.
"""
