"""claimctl: the workload controller for the lifecycle of DRA reservations."""

__version__ = "0.1.0"
