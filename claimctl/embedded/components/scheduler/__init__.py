"""The emulated kube-scheduler."""
