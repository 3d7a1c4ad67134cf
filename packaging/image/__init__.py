"""The image of claimctl's controller, made without Docker and without a registry.

It is built of locked Debian packages and locked wheels alone: the same commit gives the same bytes
at any time and place. ``python -m image`` builds it, ``python -m image.check`` tries it.
"""
