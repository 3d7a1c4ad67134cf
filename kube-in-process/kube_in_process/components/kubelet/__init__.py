"""The emulated kubelets and the nodes that they run on."""
