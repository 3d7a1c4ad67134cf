"""``claimctl demo``: the whole story on an embedded cluster, or on real programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from claimctl.cli.errors import CommandFailed, ExitCode, UsageError
from claimctl.cli.formats import FactsOption, Output

if TYPE_CHECKING:
    from kube_in_process.real.nodes.cluster import NodeCluster
    from kube_in_process.real.servers.plane import ControlPlane

    from claimctl_demo.story.report import Printer, Report


class Dialects(StrEnum):
    NATIVE = "native"
    PODGROUP = "podgroup"
    HOLD = "hold"


class Versions(StrEnum):
    V1_32 = "1.32"
    V1_33 = "1.33"
    V1_34 = "1.34"
    V1_35 = "1.35"
    V1_36 = "1.36"
    V1_37 = "1.37"


DialectOption = Annotated[
    Dialects | None,
    typer.Option(
        "--reservation-mode",
        help="Reservation API of the cluster: hold (Kubernetes as it is), podgroup (1.36 and newer "
        "with alpha features) or native (KEP-5194; no released Kubernetes). [default: hold, then "
        "the steps of native; hold with --assets or before 1.34]",
        show_default=False,
    ),
]
AssetsOption = Annotated[
    Path | None,
    typer.Option(
        "--assets",
        metavar="DIR",
        exists=True,
        file_okay=False,
        help="Play on the real programs in this folder: etcd, kube-apiserver, "
        "kube-controller-manager and kube-scheduler. A stand-in plays the kubelets.",
    ),
]
NodesOption = Annotated[
    int | None,
    typer.Option(
        "--nodes",
        metavar="N",
        min=1,
        max=3,
        help="With --assets: play on N real nodes with containers. DIR has kubelet, too. Needs "
        "root, containerd and runc.",
        show_default=False,
    ),
]
VersionOption = Annotated[
    Versions | None,
    typer.Option(
        "--kubernetes-version",
        help="Kubernetes version to emulate. [default: 1.36; with --reservation-mode, each "
        "version that it plays differently on]",
    ),
]
HtmlOption = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        help="Write a page that shows what happened. [default: none]",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="The same as -o json. [default: off]")]


EXAMPLES = (
    "claimctl demo",
    "claimctl demo --reservation-mode hold --kubernetes-version 1.34",
    "claimctl demo --html demo.html",
)


def command(
    dialect: DialectOption = None,
    kubernetes_version: VersionOption = None,
    assets: AssetsOption = None,
    nodes: NodesOption = None,
    html: HtmlOption = None,
    output: FactsOption = Output.TABLE,
    json: JsonOption = False,
) -> int:
    """Start a cluster, run the controller against it, and show what it does.

    The cluster is an embedded one, or a real control plane with --assets.

    Exit code 3: the server's history shows a violation of a promise.
    """
    import asyncio

    from claimctl.cli.progress import progress
    from claimctl.telemetry import logs
    from claimctl_demo.story.stage import StoryFailed

    logs.configure(level=logs.Level.ERROR)
    version = kubernetes_version.value if kubernetes_version else None
    results = Results(Output.JSON if json else output, html)
    results.check()
    chosen = _dialect(dialect, kubernetes_version)
    if assets is not None:
        _check_for_assets(dialect, version)
    elif nodes is not None:
        raise UsageError("--nodes: real nodes need real programs; name their folder with --assets")
    if assets is not None and nodes is not None and (code := _played_inside(assets)) is not None:
        return code
    try:
        with progress("playing", prints=True):
            if assets is not None:
                return _on_real_programs(assets, nodes, dialect or Dialects.HOLD, results)
            return asyncio.run(_story(chosen, version, results))
    except StoryFailed as failed:
        raise CommandFailed(str(failed)) from failed


@dataclass(frozen=True, slots=True)
class Results:
    """Where the results go: lines or one document on stdout, and a page."""

    output: Output
    html: Path | None

    def check(self) -> None:
        """Raise UsageError if the page cannot be written, before anything is played."""
        if self.html is None:
            return
        new = not self.html.exists()
        try:
            with self.html.open("a", encoding="utf-8"):
                pass
            if new:
                self.html.unlink()
        except OSError as error:
            raise UsageError(f"--html: cannot write {self.html}: {error.strerror}") from error

    def printer(self) -> Printer:
        from claimctl_demo.story.report import Printer, Quiet

        return Printer() if self.output.for_people else Quiet()

    def story(self, report: Report) -> None:
        from claimctl.cli.output import print_document
        from claimctl_demo.story.page import page

        if self.output.is_data:
            print_document(report.document(), self.output)
        self._write(lambda: page(report))

    def _write(self, page: Callable[[], str]) -> None:
        if self.html is None:
            return
        try:
            self.html.write_text(page(), encoding="utf-8")
        except OSError as error:
            raise CommandFailed(f"--html: cannot write {self.html}: {error.strerror}") from error
        if self.output.for_people:
            typer.echo(f"{self.html} shows what happened: open it in a browser")


def _dialect(given: Dialects | None, version: Versions | None) -> Dialects | None:
    """The dialect to play; None for both parts. Before 1.34 there is only ``hold``."""
    if version not in (Versions.V1_32, Versions.V1_33):
        return given
    if given not in (None, Dialects.HOLD):
        raise UsageError(
            f"--reservation-mode: the demonstration plays {given} from Kubernetes 1.34; "
            f"with --kubernetes-version {version} choose hold"
        )
    return Dialects.HOLD


def _check_for_assets(dialect: Dialects | None, version: str | None) -> None:
    """Raise UsageError for an option that does not go with ``--assets``."""
    if dialect is Dialects.NATIVE:
        raise UsageError(
            "--reservation-mode: no released Kubernetes speaks native; choose hold or podgroup, "
            "or leave --assets out"
        )
    if version is not None:
        raise UsageError(
            "--kubernetes-version: the programs of --assets have a version of their own; "
            "leave one of the two out"
        )


def _played_inside(assets: Path) -> int | None:
    """Run this command in namespaces of its own, as nodes need; None if it runs there already."""
    import sys

    from kube_in_process.real.nodes import enclosure
    from kube_in_process.real.nodes.needs import find_tools
    from kube_in_process.real.servers.programs import CannotStart

    if enclosure.inside():
        return None
    try:
        find_tools(assets)
        return enclosure.enclosed("claimctl", sys.argv[1:])
    except CannotStart as error:
        raise CommandFailed(f"--nodes: {error}") from error


def _on_real_programs(assets: Path, nodes: int | None, dialect: Dialects, results: Results) -> int:
    """Start the servers before the event loop, so that Ctrl-C during the start stops them."""
    import asyncio

    from kube_in_process.real.servers.programs import CannotStart

    from claimctl_demo.story.real import real_cluster, real_plane

    groups = dialect is Dialects.PODGROUP
    try:
        if nodes is not None:
            with real_cluster(assets, nodes, pod_groups=groups) as cluster:
                return asyncio.run(_real_story(cluster.plane, dialect, results, cluster))
        with real_plane(assets, pod_groups=groups) as plane:
            return asyncio.run(_real_story(plane, dialect, results))
    except CannotStart as error:
        raise CommandFailed(f"--assets: {error}") from error


async def _real_story(
    plane: ControlPlane, dialect: Dialects, results: Results, nodes: NodeCluster | None = None
) -> int:
    from claimctl_demo.story.show import play_real

    report = await play_real(plane, dialect.value, results.printer(), nodes)
    results.story(report)
    return exit_code(report)


async def _story(dialect: Dialects | None, version: str | None, results: Results) -> int:
    from claimctl_demo.story.parts import parts_to_play
    from claimctl_demo.story.show import play

    parts = parts_to_play(dialect.value if dialect else None, version)
    report = await play(parts, results.printer())
    results.story(report)
    return exit_code(report)


def exit_code(report: Report) -> int:
    """Violations are findings; a step that did not come true is a failure."""
    if report.violations:
        return ExitCode.FINDINGS
    return ExitCode.OK if report.ok else ExitCode.FAILED
