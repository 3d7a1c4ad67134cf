"""``python -m labs``: lists the labs. ``python -m labs NAME [flags]``: runs one of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

LABS = {
    "model": ("model.lab", "try every order of events within small bounds"),
    "torture": ("torture.lab", "play random schedules and faults on kube-in-process"),
    "torture-mutants": ("torture.mutants", "plant known bugs in claimctl; torture must catch each"),
    "sticky": ("sticky.lab", "random users of sticky claims; each ordinal keeps its device"),
    "sticky-mutants": ("sticky.mutants", "plant bugs about sticky claims; sticky must find each"),
    "agreement": ("agreement.lab", "ask all commands about random states; all must say the truth"),
    "kinds": ("kinds.lab", "play random rules of a kind, lies of its status, and lost rights"),
    "histories": ("torture.histories", "compare what claimctl does before and after a change"),
    "habits": ("habits.lab", "play drivers with habits, with claimctl and without it"),
    "torture-real": ("torture_real.lab", "play schedules while real servers are killed"),
    "torture-nodes": ("torture_nodes.lab", "random users and random kills on real nodes"),
    "torture-real-mutants": ("torture_real.mutants", "plant bugs; torture-real must catch each"),
    "torture-real-again": ("torture_real.again", "judge kept histories of torture-real again"),
    "mutations": ("mutation.lab", "change claimctl at random; the tests must notice each change"),
    "reschedule-clusters": (
        "claimctl_reschedule_labs.clusters.lab",
        "move pods on random clusters",
    ),
    "slow-scheduler": ("slow_scheduler.lab", "release claims beside a slow real scheduler"),
    "switching": ("switching.lab", "switch PodGroups off and on again on busy real servers"),
    "installed": ("installed.lab", "install the image on real nodes, and disturb it there"),
}
"""The module of each lab, and what it does. The labs of a house of their own have its name."""


def main(arguments: Sequence[str]) -> int:
    """Run the lab that is named, and exit with its code; without a name list all."""
    if not arguments or arguments[0] in ("-h", "--help"):
        listed = "\n".join(f"  {name:20} {what}" for name, (_, what) in LABS.items())
        argparse.ArgumentParser(
            prog="python -m labs",
            usage="python -m labs NAME [flags]",
            description=f"Programs that prove, compare or measure:\n\n{listed}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            add_help=False,
        ).print_help()
        return 0
    name, *rest = arguments
    if name not in LABS:
        print(f"labs: no lab is named {name!r}: `python -m labs` lists them", file=sys.stderr)
        return 2
    lab: Callable[[Sequence[str]], int] = import_module(module_of(name)).main
    return lab(rest)


def module_of(name: str) -> str:
    """The full name of the module of a lab."""
    module, _ = LABS[name]
    return module if module.startswith("claimctl_") else f"labs.{module}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
