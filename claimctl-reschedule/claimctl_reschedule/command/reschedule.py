"""``claimctl reschedule``: moves pods to better nodes, and knows which claims keep them."""

from __future__ import annotations

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl_reschedule.command.wanted import RescheduleOptions

EXAMPLES = (
    "claimctl reschedule --policy-config-file policy.yaml --dry-run=client",
    "claimctl reschedule --policy-config-file policy.yaml --dry-run=client --plan-out plan.json",
    "claimctl reschedule --policy-config-file policy.yaml --plan plan.json",
    "claimctl reschedule --policy-config-file policy.yaml --why default/train-0",
    "claimctl reschedule --release-taints",
)


@connecting_patiently
def command(wanted: RescheduleOptions, access: Access = DEFAULT) -> int:
    """Evict pods so that they run on better nodes, by a policy file of the descheduler.

    Exit code 3: some planned evictions were refused, or a pod for which room was to be made has
    none.
    """
    from claimctl_reschedule.command.work import carry_out

    return carry_out(wanted, access)
