"""What hangs together: workload, pods, claims, devices and nodes, as a tree or a diagram.

``graph`` builds the graph from objects. ``text``, ``diagrams`` and ``document`` print it.
"""
