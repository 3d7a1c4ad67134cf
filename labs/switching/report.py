"""Prints what a run of ``make switching`` has shown."""

from __future__ import annotations

from collections.abc import Sequence

from labs.switching.run import Run

_SHOWN = 5


def report(run: Run) -> bool:
    """Print the figures, and return whether anything was wrong."""
    options = run.options
    for name, value in (
        ("switching", f"Kubernetes {options.programs.text}, {options.order} order"),
        ("size", f"{options.claims} claims x {options.pods} pods"),
        ("user actions", str(run.workloads.actions)),
        ("seconds", ", ".join(f"{name} {seconds:.0f}" for name, seconds in run.times.items())),
        ("pods refused", _some(run.refused)),
        ("found on nodes", _some(run.found)),
        ("other than expected", _some(run.wrong)),
    ):
        print(f"{name:20} {value}")
    return bool(run.refused or run.found or run.wrong)


def _some(texts: Sequence[str]) -> str:
    shown = "".join(f"\n    {text}" for text in texts[:_SHOWN])
    more = f"\n    and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return f"{len(texts)}{shown}{more}"
