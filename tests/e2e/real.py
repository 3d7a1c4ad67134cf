"""Plays the scenarios on real control planes: ``make e2e-real``.

With ``KUBEBUILDER_ASSETS`` it starts a control plane from the programs in that folder, with
PodGroups if ``CLAIMCTL_E2E_GATES`` is set. With ``CLAIMCTL_E2E_KUBECONFIG`` it uses the cluster of
that kubeconfig.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from kube_in_process.options import Preset
from kube_in_process.real.servers.programs import CannotStart

from claimctl.kube.errors import ConfigError, KubeError
from claimctl_demo.story.presets import DIALECTS
from tests.e2e import playground, selection
from tests.e2e.forked import SideBySide
from tests.e2e.playground import ASSETS, CLUSTER, OWNERS, furnished, started
from tests.e2e.real_cluster import RealCluster

KUBECONFIG, GATES, WORKERS = (f"CLAIMCTL_E2E_{name}" for name in ("KUBECONFIG", "GATES", "WORKERS"))
CORE = "--core"
"""Play only the scenarios that guard the promises."""
_AT_ONCE = 24
"""Many at once, since scenarios wait most of the time."""
_PAUSE_SECONDS = 1.0
"""Without it two dozen scenarios begin at once, and the scheduler ignores some pods for minutes."""
SETTINGS = (
    *("-o", "faulthandler_timeout=900"),
    # Objects that a failed scenario left open are collected during another one.
    *("-W", "ignore::pytest.PytestUnraisableExceptionWarning", "-W", "ignore::ResourceWarning"),
)
SCENARIOS = (
    *("test_controller_[!c]*.py", "test_controller_chance.py", "test_release_orphans*.py"),
    *("test_claims_commands.py", "test_doctor.py", "test_orphans_command.py"),
    *("test_driver_check_habits.py", "test_sticky_[cgp]*.py"),
    *("test_pictures_commands.py", "test_every_command.py", "test_kinds_commands.py"),
    *(
        "test_downgrade_command.py",
        "test_upgrade_busy.py",
        "test_uninstall_command.py",
        "test_runbook_uninstall.py",
    ),
)
RESCHEDULE = (
    *("test_moves.py", "test_critical.py", "test_killed.py", "test_rounds.py"),
    *("test_resizes.py", "test_kinds.py", "test_duplicates.py"),
)
HERE = Path(__file__).parent
FOLDERS = {
    HERE: SCENARIOS,
    HERE.parents[1] / "claimctl-reschedule/claimctl_reschedule_tests/e2e": RESCHEDULE,
}
"""The scenarios of each folder."""


@contextmanager
def prepared(environment: Mapping[str, str]) -> Iterator[RealCluster]:
    """The cluster that the environment selects.

    Raises:
        CannotStart: neither variable is set, or the programs in the folder do not start.
        ConfigError, KubeError: the kubeconfig or its cluster cannot be used.
    """
    if kubeconfig := environment.get(KUBECONFIG):
        yield asyncio.run(furnished(kubeconfig, keeps=False))
        return
    if not environment.get(ASSETS):
        raise CannotStart(
            f"set {ASSETS} to the folder of etcd, kube-apiserver, kube-controller-manager and "
            f"kube-scheduler, or {KUBECONFIG} to the kubeconfig of a cluster for tests"
        )
    groups = environment.get(GATES, "") not in ("", "0")
    with started(Path(environment[ASSETS]), pod_groups=groups) as (_, cluster):
        yield cluster


def as_json(cluster: RealCluster) -> str:
    shown = {
        "kubeconfig": cluster.kubeconfig,
        "version": cluster.version,
        "dialect": DIALECTS[cluster.dialect],
        "keeps": cluster.keeps,
        "plays_hold": cluster.plays_hold,
    }
    return json.dumps(shown)


def main(arguments: list[str]) -> int:
    core = CORE in arguments
    chosen = [each for each in arguments if each != CORE]
    named = any(".py" in each for each in chosen)
    if not named:
        chosen += _files("pytest.mark.core" if core else "")
    if core:
        chosen += ["-m", "core and not alone"]
    try:
        with prepared(os.environ) as cluster:
            version = ".".join(map(str, cluster.version))
            print(f"Kubernetes {version}, dialect {DIALECTS[cluster.dialect]}", flush=True)
            if not core and not named and cluster.dialect is Preset.POD_GROUPS:
                cluster = replace(cluster, plays_hold=False)
            return _played(cluster, chosen)
    except CannotStart as error:
        print(f"error: {error}", file=sys.stderr)
        return 1 if os.environ.get(ASSETS) else 2
    except (ConfigError, KubeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _played(cluster: RealCluster, chosen: list[str]) -> int:
    """Play most scenarios in parallel, and meanwhile those marked ``alone`` one after the other."""
    os.environ[CLUSTER] = as_json(cluster)
    workers = int(os.environ.get(WORKERS, _AT_ONCE))
    beside = SideBySide(
        workers, selection.is_alone, OWNERS, playground.close, selection.rank, _PAUSE_SECONDS
    )
    return int(pytest.main(["-q", *SETTINGS, *chosen], plugins=[beside]))


def _files(mark: str) -> list[str]:
    """The files of scenarios that contain a text."""
    found = [
        path
        for folder, patterns in FOLDERS.items()
        for path in sorted(path for pattern in patterns for path in folder.glob(pattern))
    ]
    return [str(path) for path in found if mark in path.read_text()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
