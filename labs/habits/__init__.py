"""Plays drivers with habits through the lives of workloads, with claimctl and without it."""
