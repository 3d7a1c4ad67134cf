"""What a person asks about claims: why one is held, whether a controller acts, what is wrong.

``claim_view`` is a claim as it is shown, ``explain`` answers about one claim, ``controller_health``
tells from outside whether a controller acts, and ``cluster_checks`` are the checks of ``doctor``.
"""
