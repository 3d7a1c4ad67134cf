"""``python -m tests.e2e.real [pytest arguments]``: the scenarios on a real API server.

With ``CLAIMCTL_E2E_KUBECONFIG`` on the cluster of that kubeconfig. Otherwise with the programs in
``KUBEBUILDER_ASSETS``: etcd and kube-apiserver, and kube-scheduler and kube-controller-manager
where they are there; they listen on the loopback only and end with the tests.
``CLAIMCTL_E2E_STAND_INS`` names, with commas, what the tests themselves play
(kubelet,scheduler,controllers); by default what the folder lacks, and nothing on a cluster of
yours. ``CLAIMCTL_E2E_APISERVER_ARGS`` are further arguments of kube-apiserver (feature gates).
"""

from __future__ import annotations

import os
import secrets
import shlex
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from claimctl.embedded.kubeconfig import Access, write_kubeconfig

KUBECONFIG, STAND_INS = "CLAIMCTL_E2E_KUBECONFIG", "CLAIMCTL_E2E_STAND_INS"
ASSETS, APISERVER_ARGUMENTS = "KUBEBUILDER_ASSETS", "CLAIMCTL_E2E_APISERVER_ARGS"
SCENARIOS = ("native", "hold", "podgroup")
_READY_SECONDS = 60.0
_STOP_SECONDS = 20.0


class CannotStart(Exception):
    """A server is missing or did not come up; one line and the end of its log."""


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _openssl(*arguments: str) -> None:
    subprocess.run(("openssl", *arguments), check=True, capture_output=True, timeout=30)


@dataclass(slots=True)
class ControlPlane:
    """Servers as processes of their own, with keys, tokens and data in one directory."""

    assets: Path
    directory: Path
    arguments: tuple[str, ...] = ()
    port: int = field(default_factory=free_port)
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    processes: list[tuple[str, subprocess.Popen[bytes]]] = field(default_factory=list)
    _storage: str = ""

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    @property
    def missing(self) -> tuple[str, ...]:
        """What has to be stood in for; kubelets always."""
        names = {"scheduler": "kube-scheduler", "controllers": "kube-controller-manager"}
        return ("kubelet", *(part for part, name in names.items() if not self._has(name)))

    def _has(self, program: str) -> bool:
        return os.access(self.assets / program, os.X_OK)

    def start(self) -> None:
        """Raises CannotStart."""
        for program in ("etcd", "kube-apiserver"):
            if not self._has(program):
                raise CannotStart(f"{ASSETS}: {self.assets / program} is not there")
        self._make_files()
        self._start_storage()
        self._start_api_server()
        for program in ("kube-controller-manager", "kube-scheduler"):
            if self._has(program):
                self._start_client(program)

    def _path(self, name: str) -> str:
        return str(self.directory / name)

    def _make_files(self) -> None:
        key, certificate = self._path("tls.key"), self._path("tls.crt")
        _openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-nodes", "-days", "2", "-subj", "/CN=claimctl-e2e"),
            *("-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
            *("-keyout", key, "-out", certificate),
        )
        _openssl("genrsa", "-out", self._path("accounts.key"), "2048")
        user = f'{self.token},claimctl-e2e,claimctl-e2e,"system:masters"\n'
        tokens = self.directory / "tokens.csv"
        tokens.touch(0o600)
        tokens.write_text(user)
        trusted = Path(certificate).read_text("ascii")
        write_kubeconfig(
            self.kubeconfig, Access(f"https://127.0.0.1:{self.port}", self.token, trusted)
        )

    def _start_storage(self) -> None:
        clients, peers = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self._storage = clients
        self._run(
            "etcd",
            f"--data-dir={self._path('etcd')}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",
        )

    def _start_api_server(self) -> None:
        self._run(
            "kube-apiserver",
            f"--etcd-servers={self._storage}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--tls-cert-file={self._path('tls.crt')}",
            f"--tls-private-key-file={self._path('tls.key')}",
            f"--token-auth-file={self._path('tokens.csv')}",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._path('accounts.key')}",
            f"--service-account-signing-key-file={self._path('accounts.key')}",
            "--service-cluster-ip-range=10.0.0.0/24",
            *self.arguments,
        )
        self._wait_until_ready()

    def _start_client(self, program: str) -> None:
        own: tuple[str, ...] = ()
        if program == "kube-controller-manager":
            own = (f"--service-account-private-key-file={self._path('accounts.key')}",)
        self._run(
            program,
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
            f"--cert-dir={self._path(program)}",
            *own,
        )

    def _run(self, program: str, *arguments: str) -> None:
        with open(self.directory / f"{program}.log", "wb") as log:
            process = subprocess.Popen(
                [str(self.assets / program), *arguments], stdout=log, stderr=subprocess.STDOUT
            )
        self.processes.append((program, process))

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + _READY_SECONDS
        while not self._ready():
            for program, process in self.processes:
                if process.poll() is not None:
                    raise CannotStart(f"{program} has ended: {self._log(program)}")
            if time.monotonic() > end:
                raise CannotStart(f"not ready in time: {self._log('kube-apiserver')}")
            time.sleep(0.2)

    def _ready(self) -> bool:
        url = f"https://127.0.0.1:{self.port}/readyz"
        asked = urllib.request.Request(url, headers={"authorization": f"Bearer {self.token}"})
        trust = ssl.create_default_context(cafile=self._path("tls.crt"))
        try:
            with urllib.request.urlopen(asked, timeout=5, context=trust) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _log(self, program: str) -> str:
        return (self.directory / f"{program}.log").read_text(errors="replace")[-2000:]

    def stop(self) -> None:
        """End the processes in the reverse order of their start."""
        for _, process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def prepared(environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The environment in which the scenarios find a cluster.

    Raises:
        CannotStart: no cluster is named, or its servers do not come up.
    """
    if environment.get(KUBECONFIG):
        yield dict(environment)
        return
    if not environment.get(ASSETS):
        raise CannotStart(f"set {KUBECONFIG}, or {ASSETS} to the folder of etcd and kube-apiserver")
    with tempfile.TemporaryDirectory(prefix="claimctl-e2e-") as directory:
        arguments = tuple(shlex.split(environment.get(APISERVER_ARGUMENTS, "")))
        plane = ControlPlane(Path(environment[ASSETS]), Path(directory), arguments)
        try:
            plane.start()
            found = {KUBECONFIG: str(plane.kubeconfig), STAND_INS: ",".join(plane.missing)}
            yield {**found, **environment}
        finally:
            plane.stop()


def main(arguments: list[str]) -> int:
    root = Path(__file__).parent
    chosen = arguments or [str(root / f"test_controller_{name}.py") for name in SCENARIOS]
    try:
        with prepared(os.environ) as environment:
            command = (sys.executable, "-m", "pytest", "-v", *chosen)
            return subprocess.run(command, env=environment, check=False).returncode
    except CannotStart as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
