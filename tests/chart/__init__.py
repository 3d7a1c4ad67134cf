"""The Helm chart: rendered, and installed on clusters."""
