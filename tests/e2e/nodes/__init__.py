"""Scenarios on real nodes: kubelets, containers and a DRA driver (``make e2e-nodes``)."""
