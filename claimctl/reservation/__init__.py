"""The decisions: who a claim is reserved for, whether it may go, and what to write next.

Everything here is a pure function of a snapshot: no I/O, no clock of its own, no logging.
``decide.decide`` is the way in; the controller gathers the snapshot and carries out the answer.
"""
