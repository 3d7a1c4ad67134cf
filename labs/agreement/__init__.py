"""Whether all commands say the same of a cluster, and the truth."""
