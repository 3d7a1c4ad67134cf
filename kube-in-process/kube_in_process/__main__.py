"""``python -m kube_in_process``: serve a cluster over HTTP until a signal."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from kube_in_process.clock import LoopClock
from kube_in_process.manifests import NotApplied, definitions_in
from kube_in_process.options import Authorization, ClusterOptions, Heartbeats, Preset
from kube_in_process.serving.kubeconfig import NAME
from kube_in_process.serving.serve import (
    HISTORY_LIMIT,
    CannotListen,
    CannotWrite,
    Serving,
    serve_until_signal,
)

VERSIONS = ("1.32", "1.33", "1.34", "1.35", "1.36", "1.37")
_BAD, _INTERRUPTED = 2, 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kube_in_process",
        description="Serve a Kubernetes cluster of this process on 127.0.0.1, until Ctrl-C.",
    )
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        required=True,
        metavar="FILE",
        help=f"gets a context '{NAME}' while the cluster runs; what is in the file stays",
    )
    parser.add_argument("--port", type=int, default=0, help="0, the default, means any free port")
    parser.add_argument("--kubernetes-version", choices=VERSIONS, default="1.36")
    parser.add_argument("--nodes", type=int, default=3, help="number of nodes")
    parser.add_argument("--devices", type=int, default=4, help="number of devices on each node")
    parser.add_argument(
        "--pod-groups", action="store_true", help="switch the gates of PodGroups on"
    )
    parser.add_argument(
        "--always-allow",
        action="store_true",
        help="allow every request, without TLS; the default is RBAC, with a certificate of the "
        "administrator in the kubeconfig",
    )
    parser.add_argument(
        "--crds",
        type=Path,
        action="append",
        default=[],
        metavar="FOLDER",
        help="a folder of files with CustomResourceDefinitions; may be given several times",
    )
    return parser


def main(arguments: Sequence[str]) -> int:
    """Serve; return 130 after Ctrl-C, 2 if the port or a file cannot be used."""
    given = _parser().parse_args(arguments)
    major, _, minor = given.kubernetes_version.partition(".")
    options = ClusterOptions(
        preset=Preset.POD_GROUPS if given.pod_groups else Preset.PLAIN,
        kubernetes_version=(int(major), int(minor)),
        nodes=given.nodes,
        devices_per_node=given.devices,
        authorization=Authorization.ALWAYS_ALLOW if given.always_allow else Authorization.RBAC,
        crd_folders=tuple(given.crds),
        heartbeats=Heartbeats(),
        history_limit=HISTORY_LIMIT,
    )
    file = given.kubeconfig

    def announce(url: str) -> None:
        print(f"cluster at {url}, context {NAME} in kubeconfig {file}", flush=True)

    try:
        for folder in given.crds:
            definitions_in(folder)
        serving = Serving(options, given.port, file, announce)
        received = asyncio.run(serve_until_signal(serving, LoopClock()))
    except CannotWrite as error:
        print(f"kube_in_process: --kubeconfig: {error}", file=sys.stderr)
        return _BAD
    except (NotApplied, OSError, ValueError) as error:
        print(f"kube_in_process: --crds: {error}", file=sys.stderr)
        return _BAD
    except CannotListen as error:
        print(f"kube_in_process: --port: {error}", file=sys.stderr)
        return _BAD
    return _INTERRUPTED if received is signal.SIGINT else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
