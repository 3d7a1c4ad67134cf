"""Searches the model, and prints bounds, states, transitions and violations."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from dataclasses import fields

from kube_in_process.real.flags import Parser

from labs.model.mutations import MUTATIONS
from labs.model.played import PLAYED
from labs.model.restarts import LARGER_CHECKPOINT_SCENARIOS
from labs.model.scenarios import GAPS, LARGER, WINDOW, Scenario
from labs.model.search import Found, Search, Violation
from labs.model.server import Bounds
from labs.model.space import Model


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    scenarios = PLAYED
    scenarios += (*LARGER, *LARGER_CHECKPOINT_SCENARIOS) if options.larger else ()
    chosen = [
        scenario for scenario in scenarios if scenario.dialect.name.startswith(options.dialect)
    ]
    searches = [_search(scenario) for scenario in chosen]
    violations = sum(len(search.violations) for search in searches)
    incomplete = sum(not search.complete for search in searches)
    print(
        f"states {sum(search.states for search in searches)}, "
        f"transitions {sum(search.transitions for search in searches)}, violations {violations}, "
        f"{'all complete' if not incomplete else f'INCOMPLETE {incomplete}'}"
    )
    if WINDOW.dialect.name.startswith(options.dialect):
        _search(WINDOW)
    if options.gaps:
        for gap in GAPS:
            _search(gap)
    missed = _break() if options.mutations else 0
    return 1 if violations or missed or incomplete else 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = Parser("labs model", __doc__)
    parser.add_argument("--dialect", default="", help="native, hold or podgroup; all by default")
    parser.add_argument("--larger", action="store_true", help="larger bounds too (minutes)")
    parser.add_argument("--gaps", action="store_true", help="show what is taken for granted")
    parser.add_argument("--mutations", action="store_true", help="break the protocol on purpose")
    return parser.parse_args(arguments)


def _search(scenario: Scenario) -> Found:
    began = time.perf_counter()
    result = Search(Model(scenario.dialect, scenario.bounds)).run()
    seconds = time.perf_counter() - began
    print(f"{scenario.dialect.name}: {scenario.name} ({_bounds(scenario.bounds)})")
    print(
        f"    {result.states} states, {result.transitions} transitions, {result.resting} ends, "
        f"{result.decisions} decisions, {len(result.violations)} violations, {seconds:.1f} s"
    )
    if not result.complete:
        print("    INCOMPLETE: there are more states than are kept")
    for what, times in sorted(result.window.items()):
        print(f"    known window: {what}: {times} transitions")
    _print(result.violations)
    return result


def _bounds(bounds: Bounds) -> str:
    """The numbers, and whatever else is not as usual."""
    usual = Bounds()
    shown = []
    for field in fields(Bounds):
        value = getattr(bounds, field.name)
        if type(value) is int or value != getattr(usual, field.name):
            text = "/".join(sorted(value)) if isinstance(value, frozenset) else value
            shown.append(f"{field.name} {text}")
    return ", ".join(shown).replace("_", " ")


def _print(violations: Iterable[Violation]) -> None:
    for violation in violations:
        print(f"    VIOLATION: {violation.what}")
        for number, line in enumerate(violation.trace, 1):
            print(f"    {number:3} {line}")


def _break() -> int:
    """Each mutation, and the same bounds without it; how many were missed or prove nothing."""
    missed, whole = 0, {}
    for mutation in MUTATIONS:
        key = (mutation.dialect, mutation.unbroken)
        if key not in whole:
            whole[key] = Search(Model(*key)).run()
        sound, broken = whole[key], mutation.search()
        clean = sound.complete and not sound.violations
        missed += not clean or not broken.violations
        print(
            f"broken: {mutation.name}: {'caught' if broken.violations else 'MISSED'} "
            f"after {broken.states} states ({mutation.dialect.name}: {_bounds(mutation.bounds)})"
        )
        print(f"    unbroken: {sound.states} states, {'clean' if clean else 'NOT CLEAN'}")
        _print(broken.violations)
    return missed
