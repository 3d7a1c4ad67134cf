"""``downgrade prepare``, ``downgrade status`` and ``downgrade restore``."""
