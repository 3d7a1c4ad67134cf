"""Kubernetes JSON as typed structs, without behaviour.

Every struct names only the fields that claimctl reads or writes. Decoding skips all other fields.
So claimctl never sends a struct back as a whole object: writes are patches of named fields (see
``claimctl.kube.client``).
"""
