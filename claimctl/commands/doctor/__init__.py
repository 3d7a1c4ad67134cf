"""``doctor`` and ``version``: what the cluster and the installation are like.

``examination`` reads what the checks need; ``diagnosis`` lists the findings of
``cluster_checks``.
"""
