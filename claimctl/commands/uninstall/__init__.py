"""Take claimctl out of a cluster: ``claimctl uninstall prepare``.

``judge`` says what is left of claimctl and why it cannot go yet, from one ``scan`` of the cluster.
``run`` removes what may go, until nothing is left or only a user can help.
"""
