"""``claimctl downgrade-prepare``: replaces workload references by pod references."""

from __future__ import annotations

from typing import Annotated

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.options import DryRunOption, SelectorOption, named, namespace_names
from claimctl.commands.downgrade.flags import ParallelismOption, TimeoutOption

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


EXAMPLES = (
    "claimctl downgrade-prepare --dry-run",
    "claimctl downgrade-prepare -n ml --skip ml/train-slice",
)


@connecting_patiently
def command(  # noqa: PLR0913 - one parameter per flag
    namespaces: NamespacesOption = None,
    selector: SelectorOption = "",
    skip: SkipOption = None,
    parallelism: ParallelismOption = None,
    timeout: TimeoutOption = None,
    dry_run: DryRunOption = False,
    output: OutputOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Replace workload references by pod references, before the feature is switched off.

    Exit code 3: some claims cannot list their pods and were left as they are.
    """
    from claimctl.commands.downgrade.prepare_work import prepare, spec_of

    spec = spec_of(namespaces or (), selector, skip or (), parallelism)
    return prepare(access, spec, timeout, output, dry_run=dry_run)
