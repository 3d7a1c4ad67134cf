"""One reconciler for each kind of key, and the result of a reconcile."""
