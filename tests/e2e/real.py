"""The scenarios on real control planes: ``make e2e-real``.

With ``KUBEBUILDER_ASSETS`` a control plane is started from the programs in that folder, with
PodGroups where ``CLAIMCTL_E2E_GATES`` is set; with ``CLAIMCTL_E2E_KUBECONFIG`` the cluster of that
kubeconfig is used.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from claimctl.controlplane.programs import CannotStart
from claimctl.kube.errors import ConfigError, KubeError
from tests.e2e.elsewhere import RealCluster
from tests.e2e.playground import ASSETS, CLUSTER, CLUSTER_DIRECTORY, furnished, started

KUBECONFIG, GATES, WORKERS = (f"CLAIMCTL_E2E_{name}" for name in ("KUBECONFIG", "GATES", "WORKERS"))
_AT_ONCE = "24"
"""Scenarios wait most of the time."""
_SETTINGS = (
    *("-o", "faulthandler_timeout=900"),
    # what a scenario that failed has left open is collected during another one
    *("-W", "ignore::pytest.PytestUnraisableExceptionWarning", "-W", "ignore::ResourceWarning"),
)
SCENARIOS = (
    *("test_controller_[!c]*.py", "test_controller_chance.py", "test_release_orphans.py"),
    *("test_claims_commands.py", "test_doctor.py", "test_orphans_command.py"),
    "test_downgrade_command.py",
)
HERE = Path(__file__).parent


@contextmanager
def prepared(environment: Mapping[str, str]) -> Iterator[RealCluster]:
    """The cluster that the environment asks for.

    Raises:
        CannotStart: neither variable is set, or the programs of the folder do not come up.
        ConfigError, KubeError: the kubeconfig, or its cluster, is of no use.
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


def _told(cluster: RealCluster) -> str:
    shown = {
        "kubeconfig": cluster.kubeconfig,
        "version": cluster.version,
        "dialect": cluster.dialect,
        "keeps": cluster.keeps,
    }
    return json.dumps(shown)


def main(arguments: list[str]) -> int:
    chosen = arguments if any(".py" in each for each in arguments) else [*arguments, *_files()]
    workers = os.environ.get(WORKERS, _AT_ONCE)
    spread = ("-n", workers, "--dist", "loadgroup", "--maxschedchunk", "1")
    try:
        with prepared(os.environ) as cluster, tempfile.TemporaryDirectory() as shared:
            print(f"Kubernetes {'.'.join(map(str, cluster.version))}, dialect {cluster.dialect}")
            command = (sys.executable, "-m", "pytest", "-q", *spread, *_SETTINGS, *chosen)
            environment = {**os.environ, CLUSTER: _told(cluster), CLUSTER_DIRECTORY: shared}
            return subprocess.run(command, env=environment, check=False).returncode
    except CannotStart as error:
        print(f"error: {error}", file=sys.stderr)
        return 1 if os.environ.get(ASSETS) else 2
    except (ConfigError, KubeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _files() -> list[str]:
    return sorted(str(path) for pattern in SCENARIOS for path in HERE.glob(pattern))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
