"""Installs claimctl in a cluster, from the manifests that the package carries."""
