"""An explicit-state model of the release protocol: every interleaving within small bounds.

The server, scheduler, KCM, kubelet, workload controller and user are the model's own; claimctl is
the real ``decide``, driven from caches that may be late and by processes that may crash anywhere.
``python -m labs model`` searches and prints what it searched.
"""
