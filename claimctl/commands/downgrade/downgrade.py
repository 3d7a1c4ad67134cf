"""The commands of a downgrade, and those of an upgrade that PodGroups are in the way of."""

from __future__ import annotations

from typing import Annotated

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.options import SelectorOption, named, namespace_names, switch
from claimctl.commands.downgrade.flags import PLAN_FLAGS, PlanFlags

NamespacesOption = Annotated[
    list[str] | None,
    named(
        "--namespace -n NAME",
        "A namespace whose claims are expanded; may be repeated.",
        "all namespaces",
        check=namespace_names,
    ),
]
SkipOption = Annotated[
    list[str] | None,
    named(
        "--skip NAMESPACE/CLAIM",
        "A claim that stays as it is; may be repeated. Its pods may fail once the feature is off.",
        "none",
    ),
]
SwitchedOffOption = Annotated[
    list[str] | None,
    named(
        "--switched-off COMPONENT",
        "You have switched the feature off there: api-server, scheduler, kube-controller-manager "
        "or kubelets; may be repeated. Use it where the cluster does not show it.",
        "only what the cluster shows",
    ),
]
WatchOption = Annotated[
    bool, switch("--watch -w", "Print again after each change, until the last step is done.")
]
ToOption = Annotated[
    str,
    named(
        "--to VERSION",
        "The Kubernetes version to upgrade to: 1.37, which drops the PodGroups of 1.36.",
    ),
]

EXAMPLES = (
    "claimctl downgrade prepare --dry-run",
    "claimctl downgrade prepare -n ml --skip ml/train-slice",
    "claimctl downgrade status",
    "claimctl downgrade status -o json",
    "claimctl downgrade restore --dry-run",
    "claimctl downgrade restore",
    "claimctl upgrade prepare --to 1.37 --dry-run",
    "claimctl upgrade prepare --to 1.37",
    "claimctl upgrade status",
    "claimctl upgrade status -w",
    "claimctl upgrade status -o json",
    "claimctl upgrade restore --dry-run",
    "claimctl upgrade restore",
)


@connecting_patiently
def downgrade_prepare(
    namespaces: NamespacesOption = None,
    selector: SelectorOption = "",
    skip: SkipOption = None,
    flags: PlanFlags = PLAN_FLAGS,
    access: Access = DEFAULT,
) -> int:
    """Replace workload references by pod references, before the feature is switched off.

    Exit code 3: some claims cannot list their pods and were left as they are.
    """
    from claimctl.commands.downgrade.prepare_work import prepare

    return prepare(access, namespaces or (), selector, skip or (), flags)


@connecting_patiently
def downgrade_status(
    switched_off: SwitchedOffOption = None,
    watch: WatchOption = False,
    output: OutputOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Show the next step of a downgrade, what each component does now, and the blocked claims.

    Exit code 3: something is in the way of the next step.
    """
    from claimctl.cli.session import in_session
    from claimctl.commands.downgrade.status_work import parts, run

    return in_session(access, run, None, parts(switched_off or ()), output, watch=watch)


@connecting_patiently
def downgrade_restore(flags: PlanFlags = PLAN_FLAGS, access: Access = DEFAULT) -> int:
    """Let the workload references return that downgrade prepare replaced, and end its freeze.

    Use it when the feature is on again in every component. The references come from the record in
    the DowngradePlan. The plan is deleted when all of them have returned. Exit code 3: some cannot
    return; they stay on record.
    """
    from claimctl.commands.downgrade.restore_work import restore

    return restore(access, flags)


@connecting_patiently
def upgrade_prepare(to: ToOption, flags: PlanFlags = PLAN_FLAGS, access: Access = DEFAULT) -> int:
    """Replace PodGroup references by pod references, and remove claimctl's PodGroups of v1alpha2.

    Workloads keep their claims. Until `upgrade restore`, new pods of a PodGroup wait. Exit code 3:
    something is in the way, and it is named; with a claim that has too many pods, or with PodGroups
    of others, nothing is written.
    """
    from claimctl.commands.downgrade.upgrade_work import prepare_upgrade

    return prepare_upgrade(access, to, flags)


@connecting_patiently
def upgrade_status(
    watch: WatchOption = False, output: OutputOption = Output.TABLE, access: Access = DEFAULT
) -> int:
    """Show the next step of an upgrade, and the claims and PodGroups that block it.

    Exit code 3: something blocks the next step.
    """
    from claimctl.cli.session import in_session
    from claimctl.commands.downgrade.upgrade_work import show_status

    return in_session(access, show_status, None, output, watch=watch)


@connecting_patiently
def upgrade_restore(flags: PlanFlags = PLAN_FLAGS, access: Access = DEFAULT) -> int:
    """Let the PodGroups return that `upgrade prepare` removed, and end its freeze.

    Use it when the whole cluster is upgraded. The controller makes the PodGroups again. Exit code
    3: some references cannot return yet; they stay on record, and another run goes on.
    """
    from claimctl.commands.downgrade.restore_work import restore

    return restore(access, flags)
