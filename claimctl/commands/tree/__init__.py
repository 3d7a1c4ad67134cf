"""How workloads, pods, claims, devices and nodes are connected, as a tree or a diagram.

``graph`` builds the graph from objects. ``drawing`` and ``document`` print it.
"""
