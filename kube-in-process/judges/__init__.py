"""Programs that compare kube-in-process with real servers. ``python -m judges`` lists them."""
