"""One reconciler for each kind of key, and what a reconcile comes to."""
