"""Who uses a claim, and who may soon."""
