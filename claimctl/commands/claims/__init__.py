"""Claims: ``get``, ``explain``, ``release``, ``reserve``; why a claim is held, and why a pod waits.

``claim_view`` is a claim as commands show it. ``explanation`` says why one claim is held,
``pod_explanation`` and ``workload_explanation`` why a pod or a workload waits, ``node_explanation``
whose devices a node has. What to do is in ``advice``, ``pod_advice`` and ``workload_advice``, and
the JSON in ``claim_document``, ``pod_document`` and ``workload_document``. ``explain_text`` prints
these documents.

``judgement`` says what is wrong with a claim, also to ``get``, ``tree`` and ``doctor``. Its parts
are ``whereabouts`` (of devices, drivers and nodes) and ``vain_requests``. ``places`` reads what
they look at. ``election`` says from outside whether a controller is elected, ``controller_health``
whether it acts on a claim.

``release_work`` asks for a release by ``release_request``, or states by ``ended_pods`` that pods
run no more; ``release_waits`` says what a release waits for.
"""
