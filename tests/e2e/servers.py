"""The servers of a control plane that one scenario has for itself, and what it may do to them."""

from __future__ import annotations

from dataclasses import dataclass

from claimctl.controlplane.plane import ControlPlane
from claimctl.controlplane.process import Server
from claimctl.controlplane.programs import API_SERVER, SCHEDULER


@dataclass(slots=True)
class Servers:
    """Of a cluster that nobody else uses meanwhile."""

    plane: ControlPlane

    @property
    def scheduler(self) -> Server:
        return self.plane.servers[SCHEDULER]

    def restart_api_server(self) -> None:
        """By SIGKILL."""
        self.plane.restart(API_SERVER)

    def restore(self) -> None:
        """All servers as they were at first."""
        self.scheduler.resume()
