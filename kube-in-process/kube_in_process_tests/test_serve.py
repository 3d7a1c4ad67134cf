"""What a served cluster does at signals."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
from kube_in_process.clock import LoopClock
from kube_in_process.cluster import Cluster
from kube_in_process.options import ClusterOptions
from kube_in_process.serving.serve import Serving, serve_until_signal


def test_sigusr1_cuts_a_node_off_and_the_next_one_connects_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sent = [signal.SIGUSR1, signal.SIGUSR1, signal.SIGTERM]
    monkeypatch.setattr(Cluster, "lose_node", lambda _, node: done.append(f"lose {node}"))
    monkeypatch.setattr(Cluster, "restore_node", lambda _, node: done.append(f"restore {node}"))

    def send_all(url: str) -> None:
        loop = asyncio.get_running_loop()
        for index, number in enumerate(sent):
            loop.call_later(0.02 * index, os.kill, os.getpid(), number)

    options = ClusterOptions(nodes=1)
    serving = Serving(options, 0, tmp_path / "kubeconfig", send_all, silent_node="node-0")
    assert asyncio.run(serve_until_signal(serving, LoopClock())) is signal.SIGTERM
    assert done == ["lose node-0", "restore node-0"]
