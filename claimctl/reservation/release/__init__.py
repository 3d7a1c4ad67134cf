"""The release of a claim: its blockers, its steps, and the finalizers that go last."""
