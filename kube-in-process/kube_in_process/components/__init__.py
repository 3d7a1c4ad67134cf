"""The emulated scheduler, controllers and kubelets."""
