"""``doctor``, ``report`` and ``version``: what the cluster and the installation are like.

``examination`` reads what the checks need; ``diagnosis`` lists the findings of
``cluster_checks``. ``bundle`` collects objects and logs, without what ``scrubbing`` hides.
"""
