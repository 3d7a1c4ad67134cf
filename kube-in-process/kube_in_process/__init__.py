"""A Kubernetes cluster in one process: API server, scheduler, controllers and kubelets."""

__version__ = "0.1.0"
