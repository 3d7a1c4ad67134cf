"""The whole demonstration: one story per version, one report."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from claimctl.controlplane.plane import ControlPlane
from claimctl.demo.real import really_staged
from claimctl.demo.report import Printer, Report
from claimctl.demo.stage import staged
from claimctl.demo.story import Plot, Story
from claimctl.embedded.options import ClusterOptions, Dialect

VERSIONS = {
    Dialect.NATIVE: ("1.36",),
    Dialect.PODGROUP: ("1.36", "1.37"),
    Dialect.HOLD: ("1.34", "1.36"),
}
"""The versions that are played by default, by dialect."""


@dataclass(frozen=True, slots=True)
class Show:
    dialect: Dialect
    versions: tuple[str, ...]

    @classmethod
    def of(cls, dialect: str, version: str | None) -> Show:
        chosen = Dialect(dialect)
        return cls(chosen, (version,) if version else VERSIONS[chosen])

    def options(self, version: str) -> ClusterOptions:
        major, minor = version.split(".")
        return ClusterOptions(
            dialect=self.dialect, kubernetes_version=(int(major), int(minor)), nodes=3
        )


async def play_real(plane: ControlPlane, dialect: str, printer: Printer) -> Report:
    """Play the story on a running control plane."""
    version = ".".join(map(str, plane.programs.version))
    report = Report(dialect, (version,), played_on=f"Kubernetes {plane.programs.text}")
    loop = asyncio.get_running_loop()
    start = loop.time()
    for line in _introduction(plane, dialect):
        printer.head(line)
    plot = Plot.of_real(Dialect(dialect), version)
    async with really_staged(plane) as (stage, scene):
        await Story(stage, plot, report, printer).play()
    report.violations += stage.witness.violations + scene.findings()
    report.errors += [str(error) for error in scene.failures]
    report.seconds = loop.time() - start
    printer.end(report)
    return report


def _introduction(plane: ControlPlane, dialect: str) -> tuple[str, ...]:
    programs = f"etcd, API server, controller manager and scheduler of {plane.programs.text}"
    return (
        f"A real control plane, dialect {dialect}: {programs}",
        "played by a stand-in: nodes, their devices and their kubelets",
    )


async def play(show: Show, printer: Printer) -> Report:
    """Play the story on each version in turn."""
    report = Report(show.dialect.value, show.versions)
    loop = asyncio.get_running_loop()
    start = loop.time()
    for version in show.versions:
        printer.head(f"An embedded cluster, dialect {show.dialect.value}, Kubernetes {version}")
        async with staged(show.options(version)) as stage:
            await Story(stage, Plot.of(show.dialect, version), report, printer).play()
        report.violations += stage.witness.violations
        report.errors += [str(error) for error in stage.scene.failures]
    report.seconds = loop.time() - start
    printer.end(report)
    return report
