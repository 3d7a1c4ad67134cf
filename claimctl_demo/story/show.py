"""The whole demonstration: one story per version, one report."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from kube_in_process.options import ClusterOptions, Preset

from claimctl_demo.real_servers.plane import ControlPlane
from claimctl_demo.story.presets import PRESETS
from claimctl_demo.story.real import really_staged
from claimctl_demo.story.report import Printer, Report
from claimctl_demo.story.stage import staged
from claimctl_demo.story.story import Plot, Story
from claimctl_demo.story.timelines import embedded_timelines, timelines

VERSIONS = {
    Preset.RESERVED_FOR_ANY_POD: ("1.36",),
    Preset.POD_GROUPS: ("1.36", "1.37"),
    Preset.PLAIN: ("1.34", "1.36"),
}
"""The versions that are played by default, by dialect."""


@contextmanager
def _timed(report: Report, printer: Printer) -> Iterator[None]:
    """Measure how long a report takes, then print its end."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    yield
    report.seconds = loop.time() - start
    printer.end(report)


async def play_real(plane: ControlPlane, dialect: str, printer: Printer) -> Report:
    """Play the story on a running control plane."""
    version = ".".join(map(str, plane.programs.version))
    report = Report(dialect, (version,), played_on=f"Kubernetes {plane.programs.text}")
    with _timed(report, printer):
        for line in _introduction(plane, dialect):
            printer.head(line)
        plot = Plot.of_real(PRESETS[dialect], version)
        async with really_staged(plane) as (stage, scene):
            await Story(stage, plot, report, printer).play()
            await stage.look_closely()
            report.timelines[version] = timelines(scene.history(), 0.0, stage.clock.now())
        report.violations += stage.witness.violations + scene.findings()
        report.errors += [str(error) for error in scene.failures]
    return report


def _introduction(plane: ControlPlane, dialect: str) -> tuple[str, ...]:
    programs = f"etcd, API server, controller manager and scheduler of {plane.programs.text}"
    return (
        f"A real control plane, dialect {dialect}: {programs}",
        "played by a stand-in: nodes, their devices and their kubelets",
    )


async def play(dialect: str, version: str | None, printer: Printer) -> Report:
    """Play the story on one version, or on each of ``VERSIONS`` in turn."""
    chosen = PRESETS[dialect]
    report = Report(dialect, (version,) if version else VERSIONS[chosen])
    with _timed(report, printer):
        for each in report.versions:
            printer.head(f"An embedded cluster, dialect {dialect}, Kubernetes {each}")
            major, minor = map(int, each.split("."))
            options = ClusterOptions(preset=chosen, kubernetes_version=(major, minor), nodes=3)
            async with staged(options) as stage:
                await Story(stage, Plot.of(chosen, each), report, printer).play()
                report.timelines[each] = embedded_timelines(stage)
            report.violations += stage.witness.violations
            report.errors += [str(error) for error in stage.scene.failures]
    return report
