"""How workloads, pods, claims, devices and nodes are connected, as a tree or a diagram.

``work`` reads the objects. ``graph`` builds the graph of them, and its document. ``drawing`` draws
it as lines or as a diagram.
"""
