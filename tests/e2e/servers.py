"""The servers of a control plane that a scenario has for itself, and faults for them."""

from __future__ import annotations

from dataclasses import dataclass

from kube_in_process.real.servers.plane import ControlPlane
from kube_in_process.real.servers.process import ServerProcess
from kube_in_process.real.servers.programs import API_SERVER, SCHEDULER


@dataclass(slots=True)
class Servers:
    """The servers of a cluster that only one scenario uses."""

    plane: ControlPlane

    @property
    def scheduler(self) -> ServerProcess:
        return self.plane.servers[SCHEDULER]

    def restart_api_server(self) -> None:
        """Kill the API server with SIGKILL and start it again."""
        self.plane.restart(API_SERVER)

    def back_up(self) -> None:
        """Copy the data of etcd."""
        self.plane.back_up()

    def restore_backup(self) -> None:
        """Kill all servers, and start them with the copy of etcd's data."""
        self.plane.restore()

    def restore(self) -> None:
        """Resume and start all servers."""
        self.scheduler.resume()
