"""The Grafana dashboard, as a ConfigMap that Grafana's sidecar loads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import yaml
from grafana_foundation_sdk.builders.common import VizLegendOptions
from grafana_foundation_sdk.builders.dashboard import Dashboard, DatasourceVariable, Row
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.stat import Panel as Stat
from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    BigValueGraphMode,
    LegendDisplayMode,
    LegendPlacement,
)
from grafana_foundation_sdk.models.dashboard import DataSourceRef

FILE = Path("deploy/components/monitoring/dashboard.yaml")
SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
SPAN, HEIGHT = 8, 7


@dataclass(frozen=True, slots=True)
class Query:
    """One expression of a panel, and the legend of its series."""

    expression: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel. ``unit`` is Grafana's name of a unit; a number stands for itself."""

    title: str
    text: str
    queries: tuple[Query, ...]
    unit: str = "short"
    number: bool = False


def _quantile(metric: str, share: float, by: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return (
        f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket[$__rate_interval])))"
    )


def _ours(metric: str) -> str:
    """A metric that other programs have as well, of claimctl's instances only."""
    return f"{metric} and on (instance) claimctl_build_info"


ROWS: dict[str, tuple[Panel, ...]] = {
    "Claims": (
        Panel(
            "Leader", "1 while a controller leads.", (Query("sum(claimctl_leader)"),), number=True
        ),
        Panel(
            "Claims by state",
            "What the leader knows of all claims.",
            (Query("sum by (state) (claimctl_claims)", "{{state}}"),),
        ),
        Panel(
            "ClaimReservations",
            "By the kind of the workload.",
            (Query("sum by (workload_kind) (claimctl_reservations)", "{{workload_kind}}"),),
        ),
        Panel(
            "From allocation to hold",
            "In this time a claim is not held yet.",
            (
                Query(_quantile("claimctl_allocation_to_hold_seconds", 0.5), "median"),
                Query(_quantile("claimctl_allocation_to_hold_seconds", 0.99), "99 %"),
            ),
            "s",
        ),
        Panel(
            "Releases",
            "Claims released, by reason.",
            (
                Query(
                    "sum by (reason) (increase(claimctl_releases_total[$__rate_interval]))",
                    "{{reason}}",
                ),
            ),
        ),
        Panel(
            "From fence to deallocation",
            "How long releases wait for schedulers.",
            (Query(_quantile("claimctl_release_wait_seconds", 0.99, "reason"), "{{reason}}"),),
            "s",
        ),
    ),
    "Needs attention": (
        Panel(
            "Lists near their limit",
            "A list has at most 256 entries.",
            (Query("max by (state) (claimctl_claims_near_limit)", "{{state}}"),),
        ),
        Panel(
            "Reservations that are not ready",
            "ClaimReservations that do not do what they say.",
            (Query("max(claimctl_reservations_not_ready)", "not ready"),),
        ),
        Panel(
            "Dangling references",
            "References whose object is gone.",
            (Query("max(claimctl_dangling_references)", "references"),),
        ),
        Panel(
            "Broken watches and unreadable objects",
            "While these are not 0, releases wait.",
            (
                Query("max by (resource) (claimctl_watch_broken)", "watch of {{resource}}"),
                Query("max by (resource) (claimctl_unreadable_objects)", "unreadable {{resource}}"),
            ),
        ),
    ),
    "Work": (
        Panel(
            "Reconciles",
            "Per second, by controller and outcome.",
            (
                Query(
                    "sum by (controller, outcome) "
                    "(rate(claimctl_reconcile_duration_seconds_count[$__rate_interval]))",
                    "{{controller}} {{outcome}}",
                ),
            ),
            "ops",
        ),
        Panel(
            "Duration of reconciles",
            "99 %, by controller.",
            (
                Query(
                    _quantile("claimctl_reconcile_duration_seconds", 0.99, "controller"),
                    "{{controller}}",
                ),
            ),
            "s",
        ),
        Panel(
            "Queue",
            "Keys that wait for a worker, and how long (99 %).",
            (
                Query("sum by (controller) (claimctl_workqueue_depth)", "{{controller}}"),
                Query(
                    _quantile("claimctl_workqueue_queue_duration_seconds", 0.99, "controller"),
                    "{{controller}}: seconds",
                ),
            ),
        ),
        Panel(
            "Pods listed ahead",
            "Per second.",
            (Query("sum(rate(claimctl_pods_listed_ahead_total[$__rate_interval]))", "pods"),),
        ),
    ),
    "API server": (
        Panel(
            "Requests",
            "Per second, by method and code.",
            (
                Query(
                    "sum by (method, code) "
                    f"({_ours('rate(rest_client_requests_total[$__rate_interval])')})",
                    "{{method}} {{code}}",
                ),
            ),
            "reqps",
        ),
        Panel(
            "Duration of requests",
            "99 %, by method.",
            (
                Query(
                    "histogram_quantile(0.99, sum by (le, verb) (rate("
                    "rest_client_request_duration_seconds_bucket[$__rate_interval]) "
                    "and on (instance) claimctl_build_info))",
                    "{{verb}}",
                ),
            ),
            "s",
        ),
        Panel(
            "Write conflicts",
            "Per second, by resource.",
            (
                Query(
                    "sum by (resource) (rate(claimctl_write_conflicts_total[$__rate_interval]))",
                    "{{resource}}",
                ),
            ),
        ),
    ),
    "Process": (
        Panel(
            "CPU",
            "Cores, by instance.",
            (Query(_ours("rate(process_cpu_seconds_total[$__rate_interval])"), "{{instance}}"),),
        ),
        Panel(
            "Memory",
            "Resident, by instance.",
            (Query(_ours("process_resident_memory_bytes"), "{{instance}}"),),
            "bytes",
        ),
        Panel(
            "Garbage collections",
            "Per second, by generation.",
            (
                Query(
                    "sum by (generation) "
                    f"({_ours('rate(python_gc_collections_total[$__rate_interval])')})",
                    "generation {{generation}}",
                ),
            ),
        ),
        Panel(
            "Versions",
            "Replicas by version.",
            (Query("count by (version) (claimctl_build_info)", "{{version}}"),),
            number=True,
        ),
    ),
}


def expressions() -> Iterator[str]:
    """All expressions of the dashboard."""
    for panels in ROWS.values():
        for panel in panels:
            for query in panel.queries:
                yield query.expression


def dashboard() -> Dashboard:
    made = (
        Dashboard("claimctl")
        .uid("claimctl")
        .description("Claims that claimctl holds, and the work of its controller")
        .tags(["claimctl", "kubernetes", "dra"])
        .refresh("30s")
        .time("now-3h", "now")
        .timezone("browser")
        .with_variable(DatasourceVariable("datasource").label("Data source").type("prometheus"))
    )
    numbers = count(1)
    for title, panels in ROWS.items():
        made = made.with_row(Row(title).id(next(numbers)))
        for panel in panels:
            shown = _stat(panel) if panel.number else _timeseries(panel)
            made = made.with_panel(shown.id(next(numbers)))
    return made


def _stat(panel: Panel) -> Stat:
    made = (
        Stat()
        .title(panel.title)
        .description(panel.text)
        .datasource(SOURCE)
        .unit(panel.unit)
        .graph_mode(BigValueGraphMode.NONE)
        .span(SPAN)
        .height(HEIGHT)
    )
    for query in _queries(panel):
        made = made.with_target(query)
    return made


def _timeseries(panel: Panel) -> Timeseries:
    legend = (
        VizLegendOptions()
        .display_mode(LegendDisplayMode.LIST)
        .placement(LegendPlacement.BOTTOM)
        .show_legend(True)
    )
    made = (
        Timeseries()
        .title(panel.title)
        .description(panel.text)
        .datasource(SOURCE)
        .unit(panel.unit)
        .min(0)
        .legend(legend)
        .span(SPAN)
        .height(HEIGHT)
    )
    for query in _queries(panel):
        made = made.with_target(query)
    return made


def _queries(panel: Panel) -> Iterator[Dataquery]:
    for letter, query in zip("ABCDEF", panel.queries, strict=False):
        yield Dataquery().expr(query.expression).legend_format(query.legend).ref_id(letter)


def model() -> str:
    """The dashboard as Grafana's JSON."""
    text = JSONEncoder(sort_keys=True, indent=1).encode(dashboard().build())
    return json.dumps(json.loads(text), indent=1, sort_keys=True)


def rendered() -> dict[Path, str]:
    """The ConfigMap, by its path in the repository."""
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "claimctl-dashboard",
            "namespace": "claimctl-system",
            "labels": {
                "app.kubernetes.io/name": "claimctl",
                "app.kubernetes.io/part-of": "claimctl",
                "grafana_dashboard": "1",
            },
        },
        "data": {"claimctl.json": _Literal(model())},
    }
    text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=100)
    return {
        FILE: "# Generated from packaging/generate/dashboard.py by `make generate`; do not edit.\n"
        + text
    }


class _Literal(str):
    """A text that is written as a block."""


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(
    _Literal,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|"),
)
