"""The reconcilers and the manager that runs them.

The data goes this way: a change in a cache -> a key in a queue -> a snapshot -> a decision (pure,
in ``claimctl.reservation``) -> at most one write -> event, span, metric. Begin with
``manager.Manager``.
"""
