"""``claimctl install``: applies the manifests and waits until the controller runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.durations import Seconds, duration_option
from claimctl.cli.errors import UsageError
from claimctl.cli.formats import Output, output_option
from claimctl.cli.options import DryRunOption, named, namespace_name, switch

EXAMPLES = (
    "claimctl install --image registry.example.com/claimctl:0.1.0 --dry-run -o yaml",
    "claimctl install --component crds --dry-run -o yaml | kubectl apply --server-side -f -",
    "claimctl install --image registry.example.com/claimctl:0.1.0 --wait",
    "claimctl install --image registry.example.com/claimctl:0.1.0 --reschedule policy.yaml",
)


ComponentOption = Annotated[
    list[str] | None,
    named(
        "--component NAME",
        "Part of the installation; may be repeated: crds, rbac, controller, base (these three), "
        "monitoring, network-policy, admission-policy, pod-deletion, sticky-claims, limits, "
        "workloads or avoidance.",
        "base",
    ),
]
InstallNamespaceOption = Annotated[
    str, named("--namespace -n NAME", "Namespace of the controller.", check=namespace_name)
]
RunbookOption = Annotated[
    str,
    named(
        "--runbook-url URL",
        "Where you keep docs/runbooks/alerts, for the component monitoring: a URL in which {alert} "
        "stands for the name of an alert.",
        "alerts name the page without a link",
    ),
]
RescheduleOption = Annotated[
    Path | None,
    named(
        "--reschedule FILE",
        "Also run claimctl reschedule in the cluster, with this policy file. Without --evict its "
        "runs only say what they would do.",
        "none",
    ),
]
ScheduleOption = Annotated[
    str,
    named(
        "--reschedule-schedule SCHEDULE",
        "When to reschedule. A schedule in cron's form makes a CronJob. A duration such as 5m "
        "makes a Deployment, which pauses for this time after each run.",
        "*/30 * * * *",
    ),
]
EvictOption = Annotated[
    bool,
    typer.Option(
        "--evict", help="Let the runs of --reschedule evict pods. [default: they are dry runs]"
    ),
]


@connecting_patiently
def command(  # noqa: PLR0913 - one parameter per flag
    components: ComponentOption = None,
    namespace: InstallNamespaceOption = "claimctl-system",
    image: Annotated[
        str,
        named(
            "--image IMAGE",
            "Image of the controller, in a registry that the cluster can pull from. Needed for the "
            "component controller and for --reschedule.",
            "none",
        ),
    ] = "",
    wait: Annotated[bool, switch("--wait", "Wait until the controller is available.")] = False,
    timeout: Annotated[
        float, duration_option("--timeout", "How long --wait waits.", least=1)
    ] = Seconds(120),
    runbook_url: RunbookOption = "",
    reschedule: RescheduleOption = None,
    schedule: ScheduleOption = "",
    evict: EvictOption = False,
    dry_run: DryRunOption = False,
    output: Annotated[Output, output_option("table", "wide", "name")] = Output.TABLE,
    access: Access = DEFAULT,
) -> None:
    """Install or upgrade claimctl: CRDs, rights and controller, by server-side apply.

    --dry-run says what would change. With -o yaml or json it prints the manifests, for `kubectl
    apply -f -` or your repository; it needs no cluster then.

    It needs the rights of a cluster administrator. Running it again changes only what differs.
    """
    if not output.for_people and not dry_run:
        raise UsageError(f"--output {output}: only with --dry-run")
    if wait and dry_run:
        raise UsageError("--wait and --dry-run exclude each other")
    from claimctl.commands.install.work import choose, install, print_choice

    choice = choose(components, namespace, image, runbook_url, (reschedule, schedule, evict))
    if choice.needs_image and not image:
        raise UsageError(
            "--image is missing: name the image of the controller, in a registry that the cluster "
            "can pull from (`make image` builds it)"
        )
    if not output.for_people:
        print_choice(choice, output)
        return
    install(access, choice, seconds=timeout if wait else 0, dry_run=dry_run)
