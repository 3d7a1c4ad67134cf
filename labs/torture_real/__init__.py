"""Tests of the promises under faults on a real control plane, judged by the same witness.

``controllers`` runs claimctl. ``faults`` injects faults, and ``user_actions`` does what users do.
``schedule`` and ``final_checks`` play one namespace, and ``judge`` lets the witness read its
history.
"""
