"""The flags of ``claimctl install``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from claimctl.cli.options import namespace_name

ComponentOption = Annotated[
    list[str] | None,
    typer.Option(
        "--component",
        metavar="NAME",
        help="Part of the installation; may be repeated: crds, rbac, controller, base (these "
        "three), monitoring, network-policy, admission-policy, pod-deletion, workloads or "
        "avoidance. "
        "[default: base]",
    ),
]
InstallNamespaceOption = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="Namespace of the controller.",
        callback=namespace_name,
    ),
]
RunbookOption = Annotated[
    str,
    typer.Option(
        "--runbook-url",
        metavar="URL",
        help="Where you keep docs/runbooks/alerts, for the component monitoring: a URL in which "
        "{alert} stands for the name of an alert. [default: alerts name the page without a link]",
    ),
]
RescheduleOption = Annotated[
    Path | None,
    typer.Option(
        "--reschedule",
        metavar="FILE",
        help="Also run claimctl reschedule in the cluster, with this policy file. Without --evict "
        "its runs only say what they would do. [default: none]",
    ),
]
ScheduleOption = Annotated[
    str,
    typer.Option(
        "--reschedule-schedule",
        metavar="SCHEDULE",
        help="When to reschedule. A schedule in cron's form makes a CronJob. A duration such as 5m "
        "makes a Deployment, which pauses for this time after each run. [default: */30 * * * *]",
    ),
]
EvictOption = Annotated[
    bool,
    typer.Option(
        "--evict", help="Let the runs of --reschedule evict pods. [default: they are dry runs]"
    ),
]
