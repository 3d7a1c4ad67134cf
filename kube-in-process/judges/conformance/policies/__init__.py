"""Mutating admission policies, each with what a real server said of it and of a pod."""
