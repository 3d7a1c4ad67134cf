"""Switches PodGroups off and on again on a busy real control plane."""
