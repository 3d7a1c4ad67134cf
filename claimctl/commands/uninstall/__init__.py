"""Take claimctl out of a cluster: ``claimctl uninstall prepare``, ``verify`` and ``run``.

``judge`` says what is left of claimctl and why it cannot go yet, from one ``scan`` of the cluster.
``run`` removes what may go, until nothing is left or only a user can help, by ``writes`` and, for
what ``claimctl reschedule`` left, by ``sweep``. ``sticky`` has what concerns sticky claims of both.
``work`` is the commands: it asks, runs, prints, stops the controller (``stopping``), and deletes
what was installed.
"""
