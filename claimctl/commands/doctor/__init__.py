"""``doctor`` and ``version``: what the cluster and the installation are like.

``examination`` reads what the checks need, into the data of ``model``. ``diagnosis`` lists the
lines about the installation, and those of ``cluster_checks``, which names every check. A larger
check has a file of its own, such as ``claim_matters`` and ``dangling``. ``version`` reads what
``account`` reads, and imports no check.
"""
