"""Claims: ``get``, ``explain`` and ``release``, and why a claim is held or a pod waits.

``claim_view`` is a claim as commands show it. ``explanation`` says why one claim is held,
``pod_explanation`` why a pod or a workload waits, ``advice`` what to do.
``election`` says from outside whether a controller is elected, ``controller_health`` whether it
acts on a claim.
"""
