"""The strategies: each finds pods that should move, and moves them in the ``World``."""
