"""Tests of the promises under faults on a real control plane, judged by the same witness.

``controllers`` runs claimctl, ``havoc`` has the faults, ``people`` the user actions. ``schedule``
and ``epilogue`` play one namespace, and ``judge`` lets the witness read its history.
"""
