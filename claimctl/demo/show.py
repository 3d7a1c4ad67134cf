"""The demonstration as a whole: a story per version, one report."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from claimctl.demo.report import Printer, Report
from claimctl.demo.stage import staged
from claimctl.demo.story import Plot, Story
from claimctl.embedded.options import ClusterOptions, Dialect

VERSIONS = {
    Dialect.NATIVE: ("1.36",),
    Dialect.PODGROUP: ("1.36", "1.37"),
    Dialect.HOLD: ("1.34", "1.36"),
}
"""What is shown when no version is asked for."""


@dataclass(frozen=True, slots=True)
class Show:
    dialect: Dialect
    versions: tuple[str, ...]

    @classmethod
    def of(cls, dialect: str, version: str | None) -> Show:
        spoken = Dialect(dialect)
        return cls(spoken, (version,) if version else VERSIONS[spoken])

    def options(self, version: str) -> ClusterOptions:
        major, minor = version.split(".")
        return ClusterOptions(
            dialect=self.dialect, kubernetes_version=(int(major), int(minor)), nodes=3
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
        report.errors += [str(error) for error in stage.cluster.failures]
    report.seconds = loop.time() - start
    printer.end(report)
    return report
