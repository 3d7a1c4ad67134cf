"""Is a pod bound on a claim that claimctl has deallocated meanwhile?

Many tries side by side on a real control plane, each in a namespace of its own. The scheduler is
fast until every claim is held; then it is slow, pods come, and the claims are to be released.
Exit code 1 when a pod was bound on a claim without allocation, or a claim is not released.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from kube_in_process.real.flags import Parser, Servers, number
from kube_in_process.real.servers.plane import ControlPlane, Wanted

from claimctl.kube.transport import HttpTransport
from claimctl.reservation.facts.snapshot import Rules
from labs import frame
from labs.slow_scheduler.binding import Act, BindingTry
from labs.slow_scheduler.run import RATE, VOLUME, SlowRun
from labs.torture_real.controllers import Controllers


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowSchedulerOptions(Servers):
    tries: int
    cause: str
    binding: float | None
    """Seconds; 0 is a release that does not wait for pods that may be bound."""

    @property
    def flags_of_claimctl(self) -> tuple[str, ...]:
        usual = Rules()
        quick, slow = usual.binding_seconds, usual.slow_binding_seconds
        if self.binding is not None:
            quick = slow = self.binding
        return (f"--binding-seconds={quick:g}", f"--slow-binding-seconds={slow:g}")


def parser() -> Parser:
    flags = Parser("labs slow-scheduler", __doc__)
    flags.add_servers()
    flags.add_argument("--tries", type=number(1, 100), default=50, help="of each reason")
    flags.add_argument("--cause", choices=(RATE, VOLUME), default=RATE, help="of the slowness")
    seconds = number(kind=float)
    flags.add_argument("--binding", type=seconds, help="claimctl's binding seconds (as usual)")
    return flags


def main(arguments: Sequence[str]) -> int:
    options = parser().read(arguments, SlowSchedulerOptions)

    async def play(plane: ControlPlane, transport: HttpTransport) -> int:
        controllers = Controllers(plane.files, plane.directory, flags=options.flags_of_claimctl)
        run = SlowRun(plane, transport, options.pod_groups, options.cause)
        try:
            await run.play(controllers, options.tries)
        finally:
            await asyncio.to_thread(controllers.stop_all)
        print(frame.figures(_lines(options, run)))
        stranded = any(attempt.stranded for attempt in run.tries)
        return 1 if run.forbidden or run.unreleased or stranded else 0

    return frame.on_servers(options, Wanted(pod_groups=options.pod_groups), play)


def _lines(options: SlowSchedulerOptions, run: SlowRun) -> list[tuple[str, object]]:
    rule = "as usual" if options.binding is None else f"for {options.binding:g} s"
    return [
        ("slow-scheduler", f"{options.label}, slow by {options.cause}"),
        ("pods waited for", rule),
        *((act, _times([attempt for attempt in run.tries if attempt.act is act])) for act in Act),
        ("seen by kubelets", frame.some(run.forbidden)),
        ("not released", frame.some(run.unreleased)),
    ]


def _times(tries: Sequence[BindingTry]) -> str:
    times = [attempt.bound - attempt.acted for attempt in tries if attempt.bound] or [0.0]
    late = f"{min(times):.1f} to {max(times):.1f} s later (median {median(times):.1f})"
    bound, lost = (
        sum(bool(attempt.bound) for attempt in tries),
        sum(attempt.stranded for attempt in tries),
    )
    return f"{len(tries)} tries, {bound} pods bound {late}, {lost} on a claim without allocation"
