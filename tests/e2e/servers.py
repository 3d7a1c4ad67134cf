"""The servers of a control plane that one scenario has for itself, and what it may do to them."""

from __future__ import annotations

from dataclasses import dataclass

from claimctl.controlplane.plane import ControlPlane
from claimctl.controlplane.process import Server
from claimctl.controlplane.programs import API_SERVER, CONTROLLER_MANAGER, SCHEDULER

_CONTROLLERS = "--controllers="
_WITHOUT_CLAIMS = ",-resourceclaim-controller"


@dataclass(slots=True)
class Servers:
    """Of a cluster that nobody else uses meanwhile."""

    plane: ControlPlane

    @property
    def scheduler(self) -> Server:
        return self.plane.servers[SCHEDULER]

    def look_after_claims(self, *, on: bool) -> None:
        """Start the controller manager with or without its resourceclaim controller."""
        manager = self.plane.servers[CONTROLLER_MANAGER]
        wanted = [_switched(flag, on=on) for flag in manager.command]
        if wanted != list(manager.command):
            manager.kill()
            manager.command = wanted
            manager.start()

    def restart_api_server(self) -> None:
        """By SIGKILL."""
        self.plane.restart(API_SERVER)

    def restore(self) -> None:
        """All servers as they were at first."""
        self.scheduler.resume()
        self.look_after_claims(on=True)


def _switched(flag: str, *, on: bool) -> str:
    if not flag.startswith(_CONTROLLERS):
        return flag
    without = flag.removesuffix(_WITHOUT_CLAIMS)
    return without if on else f"{without}{_WITHOUT_CLAIMS}"
