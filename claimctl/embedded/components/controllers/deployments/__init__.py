"""The controller of Deployments."""
