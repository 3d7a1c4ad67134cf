"""``python -m labs``: lists the labs. ``python -m labs NAME [flags]``: runs one of them."""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Sequence

LABS = {
    "model": ("labs.model", "try every order of events within small bounds"),
    "torture": ("labs.torture", "play random schedules and faults on kube-in-process"),
    "mutants": ("labs.torture.mutants", "plant known bugs in claimctl; torture must catch each"),
    "histories": ("labs.torture.histories", "compare what claimctl does before and after a change"),
    "torture-real": ("labs.torture_real", "play schedules while real servers are killed"),
    "mutants-real": ("labs.torture_real.mutants", "plant known bugs; torture-real must catch each"),
    "again-real": ("labs.torture_real.again", "judge a kept history of torture-real again"),
    "mutations": ("labs.mutation", "make random changes in claimctl; the tests must notice each"),
    "conformance": ("labs.conformance", "replay recordings of real servers on kube-in-process"),
    "record-scheduling": ("labs.conformance.scheduling.record", "record cases of scheduling"),
    "differential": ("labs.differential", "compare kube-in-process with real servers"),
    "again": ("labs.differential.again", "compare kept answers of real servers again"),
    "record": ("labs.differential.record", "make a recording of kept answers"),
    "actions": ("labs.differential.actions", "compare stories alone with real servers"),
    "record-actions": ("labs.differential.actions.record", "record stories on real servers"),
    "fuzz": ("labs.fuzz", "send random requests to kube-in-process"),
    "clusters": ("labs.clusters", "move pods on random clusters"),
    "slow-scheduler": ("labs.slow_scheduler", "release claims beside a slow real scheduler"),
    "switching": ("labs.switching", "switch PodGroups off and on again on busy real servers"),
    "moving": ("labs.moving", "measure where evicted pods go on real servers"),
    "placing": ("labs.placing", "measure what keeps an owner's pods off a node on real servers"),
}
"""The module of each lab, and what it does."""


def main(arguments: Sequence[str]) -> int:
    """Run the lab that is named, and exit with its code; without a name list all."""
    if not arguments or arguments[0] in ("-h", "--help"):
        listed = "\n".join(f"  {name:18} {what}" for name, (_, what) in LABS.items())
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
    sys.argv = [f"python -m labs {name}", *rest]
    runpy.run_module(LABS[name][0], run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
