"""One containerd for each node: two kubelets on one containerd delete each other's containers."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from kube_in_process.real.nodes.images import IMAGE
from kube_in_process.real.nodes.network import pod_subnet
from kube_in_process.real.servers.process import ServerProcess
from kube_in_process.real.servers.programs import CannotStart

_READY_SECONDS = 30.0
_LOOK_SECONDS = 0.1
_CONFIG = """\
version = 2
root = "{home}/root"
state = "{home}/state"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
  address = "{home}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image}"
  # without CAP_SYS_RESOURCE, runc cannot lower the score and does not start
  restrict_oom_score_adj = true
  enable_cdi = true
  cdi_spec_dirs = ["{home}/cdi"]
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{home}/cni"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
"""


@dataclass(slots=True)
class Containerd:
    """The containerd of one node, with its files in ``home``, which must exist."""

    number: int
    home: Path
    plugins: Path
    server: ServerProcess

    @property
    def address(self) -> str:
        return str(self.home / "containerd.sock")

    def start(self, image: Path) -> None:
        """Start it, wait until it answers, and import an image.

        Raises:
            CannotStart: it ended, or gives no answer in time.
        """
        self.server.start()
        self.wait_until_ready()
        self.import_image(image)

    def import_image(self, archive: Path) -> None:
        """Import the archive of an image.

        Raises:
            CannotStart: containerd refuses it.
        """
        self._ctr("images", "import", str(archive))

    def name_image(self, reference: str, more: str) -> None:
        """Give an image another name, too."""
        self._ctr("images", "tag", reference, more)

    def process(self, container: str) -> int:
        """The number of the process of a container that runs."""
        lines = [line.split() for line in self._ctr("tasks", "list").splitlines()]
        [number] = [words[1] for words in lines if words[0] == container]
        return int(number)

    def wait_until_ready(self) -> None:
        end = time.monotonic() + _READY_SECONDS
        while self._call("version").returncode:
            self.server.check()
            if time.monotonic() > end:
                raise CannotStart(f"containerd gives no answer: {self.server.last_error()}")
            time.sleep(_LOOK_SECONDS)

    def running(self) -> list[str]:
        """The IDs of the tasks that run: sandboxes and containers."""
        lines = self._ctr("tasks", "list").splitlines()[1:]
        return sorted(line.split()[0] for line in lines if "RUNNING" in line)

    def kill_all(self) -> None:
        """Kill all containers, as a loss of power does.

        Raises:
            CannotStart: containers are left, although they were killed again and again.
        """
        end = time.monotonic() + _READY_SECONDS
        while left := self.running():
            if time.monotonic() > end:
                raise CannotStart(f"containers cannot be killed: {', '.join(left)}")
            for container in left:
                self._call("tasks", "kill", "--signal", "SIGKILL", "--all", container)
            time.sleep(_LOOK_SECONDS)

    def _ctr(self, *arguments: str) -> str:
        done = self._call(*arguments)
        if done.returncode:
            raise CannotStart(f"ctr {arguments[0]}: {done.stderr.strip()}")
        return done.stdout

    def _call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ("ctr", "--address", self.address, "--namespace", "k8s.io", *arguments)
        return subprocess.run(command, capture_output=True, text=True, check=False)


def make_containerd(number: int, home: Path, plugins: Path) -> Containerd:
    """Write the configuration of a node's containerd."""
    (home / "cni").mkdir()
    (home / "cni" / "pods.conflist").write_text(json.dumps(_pod_network(number)))
    config = home / "containerd.toml"
    config.write_text(_CONFIG.format(home=home, image=IMAGE, plugins=plugins))
    log = home / "containerd.log"
    server = ServerProcess("containerd", ("containerd", "--config", str(config)), log)
    return Containerd(number, home, plugins, server)


def _pod_network(number: int) -> dict[str, object]:
    ranges = [[{"subnet": pod_subnet(number)}]]
    bridge = {
        "type": "bridge",
        "bridge": f"pods{number}",
        "isGateway": True,
        "ipam": {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]},
    }
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge, {"type": "loopback"}]}
