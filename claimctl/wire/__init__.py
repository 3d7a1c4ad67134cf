"""Kubernetes JSON as slim typed structs: nothing but shapes.

Every struct names only the fields claimctl reads or writes. Fields it does not name are
skipped unseen when bytes are decoded, so a struct is never sent back as a whole object:
writes are patches of named fields (see ``claimctl.kube.client``).
"""
