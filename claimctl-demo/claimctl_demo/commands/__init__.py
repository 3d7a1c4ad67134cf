"""The commands of ``claimctl`` that need a cluster in a process."""
