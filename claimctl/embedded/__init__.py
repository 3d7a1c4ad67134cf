"""A Kubernetes cluster in one process: API server, scheduler, controllers and kubelets.

It is an independent witness: it imports ``claimctl.wire`` and nothing else of claimctl, so that
it can disagree with the product.
"""
