"""Measures on real servers what keeps the pods of one owner off a node, and what stops a loop."""
