"""Plays the same user actions on a real cluster and on the embedded one."""
