"""The controller of StatefulSets."""
