"""How the processes of the judges are set up."""

from __future__ import annotations

import logging


def quiet() -> None:
    """Switch the logs of clusters off in a process."""
    logging.getLogger("kube_in_process").setLevel(logging.CRITICAL)
