"""Habits of DRA drivers, as data: what drivers do that a cluster may be surprised by.

The drivers of the cluster in a process and of real nodes have the same habits, by the same names
(``registry.HABITS``). Everything here is pure: a driver hands in the claim as it has read it, what
its checkpoint has, and the time.
"""
