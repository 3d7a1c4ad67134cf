"""claimctl as pods of its own image, on real nodes (``make install-nodes``)."""
