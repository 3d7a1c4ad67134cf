"""``claimctl doctor driver``: what a DRA driver does with held and shared claims.

``work`` checks nodes side by side, which ``choosing`` chooses. ``trying`` plays the script of one
node with the objects of ``manifests``, ``start_watch`` watches its pods by their ``signs``, and
``leftovers`` removes everything. ``verdict`` says which habits that shows.
"""
