"""The decisions about one claim: which workloads hold it, whether to release it, what to write.

Everything here is a pure function of a snapshot: no I/O, no clock of its own, no logging. Begin
with ``decide.decide``. The controller makes the snapshot and carries out the decision.
"""
