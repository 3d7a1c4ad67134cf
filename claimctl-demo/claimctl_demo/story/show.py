"""The whole demonstration: one story for each part, one report."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kube_in_process.options import ClusterOptions
from kube_in_process.real.nodes.cluster import NodeCluster
from kube_in_process.real.servers.plane import ControlPlane

from claimctl_demo.story.machines import RealNodes
from claimctl_demo.story.parts import Part
from claimctl_demo.story.real import really_staged
from claimctl_demo.story.report import Printer, Report
from claimctl_demo.story.stage import staged
from claimctl_demo.story.story import Plot, Story
from claimctl_demo.story.timelines import embedded_timelines, timelines

_NOT_ON_NODES = ("rescheduled", "avoided", "resized")
"""Steps that need nodes with the CPUs that they say."""


@contextmanager
def _timed(report: Report, printer: Printer) -> Iterator[None]:
    """Measure how long a report takes, then print its end."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    yield
    report.seconds = loop.time() - start
    printer.end(report)


async def play_real(
    plane: ControlPlane, dialect: str, printer: Printer, nodes: NodeCluster | None = None
) -> Report:
    """Play the story on a running control plane, with its real nodes or with a stand-in."""
    version = ".".join(map(str, plane.programs.version))
    part = Part(dialect, version, skipped=() if nodes is None else _NOT_ON_NODES)
    plot = Plot.of_real(part) if nodes is None else Plot.of_nodes(part)
    report = Report((part,), played_on=f"Kubernetes {plane.programs.text}")
    with _timed(report, printer):
        for line in _introduction(plane, part, nodes):
            printer.head(line)
        async with really_staged(plane, nodes) as (stage, scene):
            await Story(stage, plot, report, printer).play()
            await stage.look_closely()
            found = timelines(scene.history(), 0.0, stage.clock.now())
            if isinstance(scene.machines, RealNodes):
                found = scene.machines.with_preparations(found)
            report.timelines[part] = found
        report.violations += stage.witness.violations + scene.findings()
        report.errors += [str(error) for error in scene.failures]
    return report


def _introduction(plane: ControlPlane, part: Part, nodes: NodeCluster | None) -> tuple[str, ...]:
    programs = f"etcd, API server, controller manager and scheduler of {plane.programs.text}"
    if nodes is None:
        played = (
            f"A real control plane: {programs}. A stand-in plays nodes, their devices and kubelets"
        )
    else:
        played = f"A real cluster: {programs}, and {nodes.count} nodes with kubelets and containers"
    return part.heading, played


async def play(parts: Sequence[Part], printer: Printer) -> Report:
    """Play the parts in turn, each on an embedded cluster of its own."""
    report = Report(tuple(parts))
    with _timed(report, printer):
        for part in report.parts:
            printer.head(f"{part.heading}, on an embedded cluster")
            options = ClusterOptions(preset=part.preset, kubernetes_version=part.numbers, nodes=3)
            async with staged(options) as stage:
                await Story(stage, Plot.of(part), report, printer).play()
                report.timelines[part] = embedded_timelines(stage)
            report.violations += stage.witness.violations
            report.errors += [str(error) for error in stage.scene.failures]
    return report
