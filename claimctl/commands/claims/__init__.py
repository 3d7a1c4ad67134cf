"""Claims: ``get``, ``explain`` and ``release``, and why a claim is held or a pod waits.

``claim_view`` is a claim as commands show it. ``explanation`` says why one claim is held,
``pod_explanation`` and ``workload_explanation`` why a pod or a workload waits, ``node_explanation``
whose devices a node has. What to do is in ``advice``, ``pod_advice`` and ``workload_advice``, and
the JSON in ``claim_document``, ``pod_document`` and ``workload_document``. ``explain_text`` prints
the documents. ``judgement`` says what is wrong with a claim, also to ``get``, ``tree`` and
``doctor``.
``election`` says from outside whether a controller is elected, ``controller_health`` whether it
acts on a claim.
"""
