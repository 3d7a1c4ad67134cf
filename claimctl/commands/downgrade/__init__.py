"""The commands of ``claimctl downgrade`` and ``claimctl upgrade``; their ``restore`` is the same.

``downgrade`` has the flags of all of them. ``following`` has a plan carried out, and ``report``
has the documents.
"""
