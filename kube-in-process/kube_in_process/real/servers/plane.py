"""Run a control plane: etcd, API server, controller manager and scheduler.

    with running(ControlPlane(find_programs(folder), directory, Wanted(pod_groups=True))) as plane:
        ... plane.files.kubeconfig() ...

All servers listen on the loopback only, unless there are containers (``Wanted``). At the end of the
``with`` block, also by an exception, every server is stopped.
"""

from __future__ import annotations

import json
import shutil
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kube_in_process.real.servers.audit import AuditLog, policy
from kube_in_process.real.servers.features import FEATURE_FLAGS, ServerFeatures, features_of
from kube_in_process.real.servers.files import (
    ADMIN_USER,
    AUTHORITY,
    CONTROLLER_MANAGER_USER,
    SCHEDULER_USER,
    Files,
    make_files,
)
from kube_in_process.real.servers.history import History
from kube_in_process.real.servers.process import ServerProcess, free_port
from kube_in_process.real.servers.programs import (
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    SCHEDULER,
    CannotStart,
    Programs,
)

READY_SECONDS = 90.0
_LOOK_SECONDS = 0.1
_START_SECONDS = 0.7
_AUDIT_POLICY, _AUDIT_LOG = "audit-policy.yaml", "audit.log"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of a control plane. ``*_flags`` are further flags; they override the defaults."""

    pod_groups: bool = False
    """Whether to switch on PodGroups for claims (Kubernetes 1.36 and newer)."""
    taint_rules: bool = False
    """Whether to switch on DeviceTaintRules, where there are any (1.36 and newer)."""
    node_lifecycle: bool = False
    """Whether the controller manager taints nodes whose kubelet does not report."""
    history: bool = False
    """Whether to make ``ControlPlane.history`` possible: the API server then stores JSON and keeps
    an audit log."""
    port: int = 0
    """The port of the API server; 0 means any free port."""
    container_addresses: tuple[str, ...] = ()
    """The addresses under which containers reach the API server; the first one is its own. Without
    any, no containers are started, the servers listen on the loopback only, and pods get no
    tokens."""
    users: Mapping[str, str] = field(default_factory=dict)
    """Further users with a token and a kubeconfig, each with a group ('' for none)."""
    api_server_flags: tuple[str, ...] = ()
    controller_manager_flags: tuple[str, ...] = ()
    scheduler_flags: tuple[str, ...] = ()
    etcd_flags: tuple[str, ...] = ()


@dataclass(slots=True)
class ControlPlane:
    """The servers of one cluster, with their files in ``directory``, which must exist."""

    programs: Programs
    directory: Path
    wanted: Wanted = field(default_factory=Wanted)
    servers: dict[str, ServerProcess] = field(default_factory=dict)
    port: int = 0
    """The port of the API server."""
    storage_url: str = ""
    """The client URL of etcd."""
    _files: Files | None = None

    @property
    def files(self) -> Files:
        if self._files is None:
            raise RuntimeError("the control plane has not been started")
        return self._files

    @property
    def features(self) -> ServerFeatures:
        return self._features(self.wanted.pod_groups)

    def _features(self, pod_groups: bool) -> ServerFeatures:
        version, rules = self.programs.version, self.wanted.taint_rules
        return features_of(version, pod_groups=pod_groups, taint_rules=rules)

    def start(self) -> None:
        """Start the servers in order and wait until the API server is ready.

        Raises:
            CannotStart: a server ended, or was not ready in time. The message has the end of its
                log.
        """
        _ = self.features
        port = self.port = self.wanted.port or free_port()
        addresses = self.wanted.container_addresses
        self._files = make_files(self.directory, port, self.wanted.users, addresses)
        self._add(ETCD, self._etcd_flags())
        self._add(API_SERVER, self._api_server_flags(port))
        for program, flags in (
            (CONTROLLER_MANAGER, self._controller_manager_flags),
            (SCHEDULER, self._scheduler_flags),
        ):
            if program in self.programs.names:
                self._add(program, flags())
        self._start_servers()

    def _start_servers(self) -> None:
        self.servers[ETCD].start()
        self._start_clients()

    def _start_clients(self) -> None:
        self.servers[API_SERVER].start()
        self.wait_until_ready()
        clients = [
            server for name, server in self.servers.items() if name not in (ETCD, API_SERVER)
        ]
        for server in clients:
            server.start()
        self._check_survival(clients)

    def history(self, managers: Mapping[str, str] | None = None) -> History:
        """A reader of all writes from the first version on; needs ``Wanted.history``.

        Args:
            managers: users by field manager, see ``History``.
        """
        return History(self.storage_url, AuditLog(self.directory / _AUDIT_LOG), managers or {})

    def compact(self) -> None:
        """Make etcd drop all versions before the present one.

        Raises:
            OSError: etcd gives no answer.
        """
        revision = self._revision()
        self._ask_storage("/v3/kv/compaction", {"revision": revision, "physical": True})

    def _revision(self) -> str:
        """The revision at which etcd is now."""
        header = self._ask_storage("/v3/kv/range", {"key": "AA=="})["header"]
        return str(header["revision"])

    def _ask_storage(self, path: str, body: Mapping[str, Any]) -> Any:
        asked = urllib.request.Request(f"{self.storage_url}{path}", json.dumps(body).encode())
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return json.load(answer)

    def stop(self) -> None:
        """Stop every server, in the reverse order of the start."""
        for server in reversed(self.servers.values()):
            server.stop()

    def restart(self, name: str, *, kill: bool = True) -> None:
        """End one server by SIGKILL or SIGTERM, start it again, and wait for the API server.

        Raises:
            CannotStart: the server does not start again.
        """
        server = self.servers[name]
        server.kill() if kill else server.stop()
        server.start()
        self.wait_until_ready()

    def back_up(self) -> None:
        """Copy the data of etcd. Etcd is paused meanwhile, so the copy is of one moment."""
        etcd = self.servers[ETCD]
        shutil.rmtree(self._backup, ignore_errors=True)
        etcd.pause()
        try:
            shutil.copytree(self._data, self._backup)
        finally:
            etcd.resume()

    def restore(self) -> int:
        """Kill all servers, put the copy of etcd's data back, and start them.

        Returns:
            The revision of the copy.

        Raises:
            CannotStart: a server does not start again.
        """
        for server in self.servers.values():
            server.kill()
        shutil.rmtree(self._data)
        shutil.copytree(self._backup, self._data)
        self.servers[ETCD].start()
        revision = int(self._when_storage_answers())
        self._start_clients()
        return revision

    def _when_storage_answers(self) -> str:
        end = time.monotonic() + READY_SECONDS
        while True:
            self.servers[ETCD].check()
            try:
                return self._revision()
            except OSError as error:
                if time.monotonic() > end:
                    raise CannotStart(f"{ETCD} gives no answer: {error}") from error
            time.sleep(_LOOK_SECONDS)

    @property
    def _data(self) -> Path:
        return self.directory / ETCD

    @property
    def _backup(self) -> Path:
        return self.directory / "backup"

    def switch(self, name: str, *, pod_groups: bool) -> None:
        """Restart one server with the feature gates of PodGroups on or off.

        Raises:
            CannotStart: the server does not start again.
        """
        server, features = self.servers[name], self._features(pod_groups)
        flags = {
            API_SERVER: features.api_server_flags(),
            SCHEDULER: features.scheduler_flags(),
        }.get(name, features.gate_flags())
        kept = [flag for flag in server.command if not flag.startswith(FEATURE_FLAGS)]
        server.command = (*kept, *flags)
        self.restart(name, kill=False)

    def wait_until_ready(self) -> None:
        """Wait until the API server is ready.

        Raises:
            CannotStart: the API server is not ready after ``READY_SECONDS``, or a server has ended.
        """
        end = time.monotonic() + READY_SECONDS
        while not self.ready():
            for server in self.servers.values():
                server.check()
            if time.monotonic() > end:
                reason = self.servers[API_SERVER].last_error()
                raise CannotStart(f"{API_SERVER} is not ready after {READY_SECONDS:g} s: {reason}")
            time.sleep(_LOOK_SECONDS)

    def _check_survival(self, servers: Sequence[ServerProcess]) -> None:
        """Wait a moment and check that the servers still run.

        These servers have no endpoint to ask. With a wrong flag they end at once.
        """
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end:
            for server in servers:
                server.check()
            time.sleep(_LOOK_SECONDS)

    def ready(self) -> bool:
        """Whether the API server reports that it is ready."""
        with suppress(OSError):
            return self.request("GET", "/readyz") == 200
        return False

    def request(self, method: str, path: str, body: bytes | None = None) -> int:
        """Send one request as administrator and return the HTTP status; for set-up only.

        Raises:
            OSError: there is no answer.
        """
        return self._ask(method, path, body)[0]

    def read(self, path: str) -> tuple[int, bytes]:
        """Send a GET as administrator and return the HTTP status and the body; for set-up only.

        Raises:
            OSError: there is no answer.
        """
        return self._ask("GET", path, None)

    def _ask(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        asked = urllib.request.Request(
            f"{self.files.url}{path}",
            data=body,
            method=method,
            headers={
                "authorization": f"Bearer {self.files.tokens[ADMIN_USER]}",
                "content-type": "application/json",
            },
        )
        trust = ssl.create_default_context(cadata=self.files.certificate)
        try:
            with urllib.request.urlopen(asked, timeout=10, context=trust) as answer:
                return int(answer.status), answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, b""

    def check(self) -> None:
        """Check that every server runs.

        Raises:
            CannotStart: a server has ended by itself. The message has the end of its log.
        """
        for server in self.servers.values():
            server.check()

    def _add(self, program: str, flags: tuple[str, ...]) -> None:
        command = (self.programs.path(program), *flags)
        self.servers[program] = ServerProcess(program, command, self.directory / f"{program}.log")

    def _etcd_flags(self) -> tuple[str, ...]:
        clients, peers = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self.storage_url = clients
        return (
            f"--data-dir={self._data}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",
            *self.wanted.etcd_flags,
        )

    def _api_server_flags(self, port: int) -> tuple[str, ...]:
        accounts = self.files.path("accounts.key")
        return (
            f"--etcd-servers={self.storage_url}",
            f"--secure-port={port}",
            f"--tls-cert-file={self.files.path('tls.crt')}",
            f"--tls-private-key-file={self.files.path('tls.key')}",
            f"--cert-dir={self.files.path('certificates')}",
            f"--token-auth-file={self.files.path('tokens.csv')}",
            "--authorization-mode=Node,RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={accounts}",
            f"--service-account-signing-key-file={accounts}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--max-requests-inflight=2000",
            "--max-mutating-requests-inflight=1000",
            *self._container_flags(),
            *self._history_flags(),
            *self.features.api_server_flags(),
            *self.wanted.api_server_flags,
        )

    def _container_flags(self) -> tuple[str, ...]:
        if addresses := self.wanted.container_addresses:
            return ("--bind-address=0.0.0.0", f"--advertise-address={addresses[0]}")
        return (
            "--bind-address=127.0.0.1",
            # without a default route, the API server finds no address to advertise
            "--advertise-address=127.0.0.1",
            # no containers are started, so pods need no ServiceAccount and no token
            "--disable-admission-plugins=ServiceAccount",
            "--endpoint-reconciler-type=none",
        )

    def _history_flags(self) -> tuple[str, ...]:
        if not self.wanted.history:
            return ()
        (self.directory / _AUDIT_POLICY).write_text(policy())
        return (
            "--storage-media-type=application/json",
            f"--audit-policy-file={self.files.path(_AUDIT_POLICY)}",
            f"--audit-log-path={self.files.path(_AUDIT_LOG)}",
            "--audit-log-mode=blocking",
        )

    def _controller_manager_flags(self) -> tuple[str, ...]:
        lifecycle = () if self.wanted.node_lifecycle else ("-node-lifecycle-controller",)
        # the nodes here have no pod addresses, routes or load balancers
        without = ("-node-ipam-controller", "-node-route-controller", "-service-lb-controller")
        return (
            f"--kubeconfig={self.files.kubeconfig(CONTROLLER_MANAGER_USER)}",
            f"--service-account-private-key-file={self.files.path('accounts.key')}",
            # pods get it with their token
            f"--root-ca-file={self.files.path(AUTHORITY)}",
            f"--controllers={','.join(('*', *lifecycle, *without))}",
            *_CLIENT_FLAGS,
            *self.features.gate_flags(),
            *self.wanted.controller_manager_flags,
        )

    def _scheduler_flags(self) -> tuple[str, ...]:
        return (
            f"--kubeconfig={self.files.kubeconfig(SCHEDULER_USER)}",
            *_CLIENT_FLAGS,
            *self.features.scheduler_flags(),
            *self.wanted.scheduler_flags,
        )


_CLIENT_FLAGS = (
    "--leader-elect=false",
    "--secure-port=0",
    "--kube-api-qps=500",
    "--kube-api-burst=1000",
)


@contextmanager
def running(plane: ControlPlane) -> Iterator[ControlPlane]:
    """Run a control plane during a ``with`` block.

    Raises:
        CannotStart: the control plane does not start. No server is left running.
    """
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()
