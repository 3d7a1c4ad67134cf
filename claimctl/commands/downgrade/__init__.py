"""The commands of ``claimctl downgrade`` and ``claimctl upgrade``; their ``restore`` is the same.

``downgrade`` has the flags of all of them. ``following`` has a plan carried out, and ``report``
says what became of it. To say how far a downgrade is, ``look`` reads the cluster, ``standing``
judges each claim and ``sightings`` each component, and ``status`` says what is next.
"""
