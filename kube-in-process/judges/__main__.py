"""``python -m judges``: lists the programs. ``python -m judges NAME [flags]``: runs one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

PROGRAMS = {
    "conformance": ("conformance.lab", "replay recordings of real servers on kube-in-process"),
    "kubectl-record": ("differential.kubectl.record", "record what kubectl asks a real server"),
    "scheduling-record": ("conformance.scheduling.record", "record cases of scheduling"),
    "refusals-record": ("conformance.refusals.record", "record how bodies are refused"),
    "policies-record": ("conformance.policies.record", "record what mutating policies do"),
    "differential": ("differential.lab", "compare kube-in-process with real servers"),
    "differential-again": ("differential.again", "compare kept answers of real servers again"),
    "differential-record": ("differential.record", "make a recording of kept answers"),
    "stories": ("differential.actions.lab", "the part of differential that plays user actions"),
    "stories-record": ("differential.actions.record", "record stories on real servers"),
    "policy-record": ("policy_record", "record the roles that a real server makes at its start"),
    "schema-record": ("schema_record", "record the fields of the kinds from the official client"),
    "openapi-record": ("openapi_record", "record what a real server says about fields"),
    "suite": ("suite", "run a client's own tests on kube-in-process and on real servers"),
    "fuzz": ("fuzz.lab", "send random requests to kube-in-process"),
}
"""The module of each program, and what it does."""


def main(arguments: Sequence[str]) -> int:
    """Run the program that is named, and return its exit code; without a name list all."""
    if not arguments or arguments[0] in ("-h", "--help"):
        listed = "\n".join(f"  {name:20} {what}" for name, (_, what) in PROGRAMS.items())
        argparse.ArgumentParser(
            prog="python -m judges",
            usage="python -m judges NAME [flags]",
            description=f"Programs that compare kube-in-process with real servers:\n\n{listed}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            add_help=False,
        ).print_help()
        return 0
    name, *rest = arguments
    if name not in PROGRAMS:
        print(
            f"judges: no program is named {name!r}: `python -m judges` lists them", file=sys.stderr
        )
        return 2
    program: Callable[[Sequence[str]], int] = import_module(f"judges.{PROGRAMS[name][0]}").main
    return program(rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
