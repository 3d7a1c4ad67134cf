"""Answers for administrators: why a claim is held, whether a controller acts, what is wrong.

``claim_view`` is a claim as commands show it. ``explain`` says why one claim is held.
``controller_health`` says from outside whether a controller acts. ``cluster_checks`` has the
checks of ``claimctl doctor``.
"""
