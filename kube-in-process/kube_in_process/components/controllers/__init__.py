"""The emulated controllers of kube-controller-manager."""
