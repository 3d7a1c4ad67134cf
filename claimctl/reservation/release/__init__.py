"""The release of a claim: what blocks it, its steps, and what goes after it."""
