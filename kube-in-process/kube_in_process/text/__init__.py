"""The text forms of names, quantities, selectors and other values, and their errors."""
