"""Random users and random kills on real nodes, judged by the calls that the DRA driver got.

``HOLD=1`` plays with claimctl, ``HOLD=0`` shows what the cluster does alone.
"""
