"""Which kinds there are, and what each does with its objects around a write."""
