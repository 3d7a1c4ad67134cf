"""Makes random small changes in claimctl's code, one at a time.

Says which of them the unit tests, the model and the end-to-end scenarios catch. No file is changed.

Exit codes: 0 each mutation is caught, or equivalent.yaml says why it changes nothing; 1 one is
missed, or caught although equivalent.yaml names it; 2 bad arguments.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest
from kube_in_process.real.flags import Parser, number

from labs.mutation.equivalent import reason
from labs.mutation.places import MutationPlaces, Place
from labs.mutation.reach import Reach
from labs.mutation.sampling import sample
from labs.mutation.trials import Result, Trials
from tests.support.imports import ChangedImports

PACKAGES = (
    "claimctl.reservation",
    "claimctl.controller",
    "claimctl.downgrade",
    "claimctl.kube",
    "claimctl_reschedule",
)
TESTS = (
    "tests/unit",
    "claimctl-reschedule/claimctl_reschedule_tests",
    "labs/model",
    "tests/e2e",
    "claimctl-demo/claimctl_demo_tests",
)
ELSEWHERE = (
    "kube-in-process/kube_in_process_tests",
    "tests/unit/packaging",
)
"""Tests of code that does not import the packages."""


def _parser() -> Parser:
    parser = Parser("labs mutations", __doc__)
    parser.add_argument("--seed", type=number(), default=0, help="chooses the places")
    parser.add_argument("--count", type=number(1), default=200, help="number of mutations")
    parser.add_argument("--workers", type=number(1), default=os.cpu_count(), help="processes")
    parser.add_argument(
        "--patience",
        type=number(1, kind=float),
        default=60.0,
        help="CPU seconds that the tests of one mutation may take without it (%(default)g)",
    )
    parser.add_argument(
        "--map", type=Path, help="keep in this file which test reaches what; measure only new tests"
    )
    parser.add_argument(
        "--only", action="append", help="mutate the places whose line of the report has this text"
    )
    return parser


@dataclass(slots=True, eq=False)
class Campaign:
    """A plugin of pytest that runs mutations instead of the collected tests."""

    wanted: argparse.Namespace
    places: list[Place]
    failed: int = 0
    done: bool = False
    results: list[Result] = field(default_factory=list)

    def pytest_configure(self) -> None:
        """Take the first example that fails: which one is the smallest does not matter."""
        # pytest warns of a plugin that is imported before it starts
        from hypothesis import Phase, settings

        settings.register_profile("mutation", settings(), phases=(Phase.explicit, Phase.generate))
        settings.load_profile("mutation")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            return False
        reach = self._measured(session)
        wanted = self.wanted
        if wanted.only:
            chosen = [place for place in self.places if any(t in str(place) for t in wanted.only)]
        else:
            chosen = sample(self.places, wanted.count, wanted.seed)
        trials = Trials(session, self.places, reach, wanted.workers, wanted.patience)
        for result in trials.results(chosen):
            self._say(result)
        for test in sorted(trials.unsound):
            print(f"does not count, as it fails alone without a mutation: {test}")
        self._sum_up()
        self.done = True
        return True

    def _measured(self, session: pytest.Session) -> Reach:
        file = self.wanted.map
        reach = Reach.read(file) if file is not None and file.exists() else Reach()
        reach.measure(session, self.places, self.wanted.workers)
        if file is not None:
            reach.write(file)
        for test, why in reach.broken.items():
            print(f"does not count, as it fails without a mutation: {test}: {why}")
        print(f"{len(self.places)} places, {len(reach.seconds)} tests", flush=True)
        return reach

    def _say(self, result: Result) -> None:
        why = reason(result.place)
        if why and result.test:
            print(f"NOT EQUIVALENT: {result}", flush=True)
        elif why:
            print(f"equivalent  {result.place}\n        {why}", flush=True)
        else:
            print(result, flush=True)
        self.failed += bool(why) == bool(result.test)
        self.results.append(result)

    def _sum_up(self) -> None:
        for package in PACKAGES:
            of = [r for r in self.results if r.place.module.startswith(f"{package}.")]
            print(f"{package:20} {_counts(of)}")
        print(f"{'all':20} {_counts(self.results)}")


def _counts(results: list[Result]) -> str:
    caught = sum(1 for result in results if result.test)
    named = sum(1 for result in results if not result.test and reason(result.place))
    missed = len(results) - caught - named
    return f"{caught} of {len(results)} caught, {named} equivalent, {missed} missed"


def planted() -> list[Place]:
    """Import the packages with all mutations switched off."""
    places = MutationPlaces()

    def wanted(module: str) -> bool:
        return module.startswith(tuple(f"{root}." for root in PACKAGES))

    sys.meta_path.insert(0, ChangedImports(wanted, places.planted))
    for root in PACKAGES:
        package = import_module(root)
        for module in walk_packages(package.__path__, f"{root}."):
            import_module(module.name)
    return places.found


def main(arguments: Sequence[str]) -> int:
    wanted = _parser().parse_args(arguments)
    campaign = Campaign(wanted, planted())
    ignored = [f"--ignore={folder}" for folder in ELSEWHERE]
    options = ("-qq", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", *ignored)
    pytest.main([*options, *TESTS], plugins=[campaign])
    return 1 if campaign.failed or not campaign.done else 0
