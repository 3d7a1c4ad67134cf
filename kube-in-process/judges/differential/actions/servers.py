"""A real control plane for stories: with short back-offs, and a short time until a node is lost."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kube_in_process.real.servers.plane import ControlPlane, Wanted, running
from kube_in_process.real.servers.programs import Programs

from judges.differential.actions.clusters import NODE_GRACE

_SCHEDULER = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: {kubeconfig}
  qps: 500
  burst: 1000
leaderElection:
  leaderElect: false
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
"""


@contextmanager
def real_servers(programs: Programs, *, pod_groups: bool) -> Iterator[ControlPlane]:
    """All servers, running within a ``with`` block. Raises CannotStart."""
    with tempfile.TemporaryDirectory(prefix="differential-") as name:
        directory = Path(name)
        config = directory / "scheduler.yaml"
        config.write_text(_SCHEDULER.format(kubeconfig=directory / "kube-scheduler.kubeconfig"))
        # The gang plugin also lets pods of a missing group wait, as the recorded servers did.
        gang = ("--feature-gates=GangScheduling=true",) if pod_groups else ()
        wanted = Wanted(
            pod_groups=pod_groups,
            node_lifecycle=True,
            api_server_flags=gang,
            controller_manager_flags=(
                *gang,
                f"--node-monitor-grace-period={NODE_GRACE:g}s",
                "--node-monitor-period=1s",
                # All nodes are in one zone, so that no story's node loss waits for another one.
                "--node-eviction-rate=100",
            ),
            scheduler_flags=(f"--config={config}", *gang),
        )
        with running(ControlPlane(programs, directory, wanted)) as plane:
            yield plane
