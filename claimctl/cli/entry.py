"""The programs of the installation: ``claimctl``, ``kubectl-claim`` and ``kubectl_complete-claim``.

To import the command line takes a tenth of a second or more. A Ctrl-C meanwhile ends the process as
it ends other programs, and not with a traceback of the imports. So this module imports little.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ended_by_interrupts() -> Iterator[None]:
    """Within the block, SIGINT ends the process at once, unless it is ignored."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def main() -> None:
    """``claimctl`` and ``kubectl-claim``."""
    with ended_by_interrupts():
        from claimctl.cli import main as command_line
    command_line.main()


def complete() -> None:
    """``kubectl_complete-claim``: a shell that completes words writes nothing to the cluster."""
    with ended_by_interrupts():
        from claimctl.cli import kubectl_completion

        kubectl_completion.main()
