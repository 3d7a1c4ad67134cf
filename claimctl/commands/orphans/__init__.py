"""Orphans: allocated claims that no component will release.

``scan`` reads the cluster. ``judge`` says why a claim is an orphan and what blocks freeing it; it
does no I/O. ``reclaim`` watches orphans and frees them with the rights of the caller.
"""
