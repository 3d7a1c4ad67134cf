"""Whole clusters: the same actions of users on a real one and on the embedded one."""
