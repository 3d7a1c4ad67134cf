"""Users who have a cluster for themselves: they also do what others would notice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from labs.torture.testbed import Testbed
from labs.torture.user_actions import Action, UserActions
from tests.e2e.harness import NAMESPACE


@dataclass
class LoneUsers(UserActions):
    """The users of kube-in-process."""

    place: Testbed

    @property
    def admin(self) -> Any:
        return self.place.cluster.admin

    def actions(self) -> list[Action]:
        return [*super().actions(), self.fail_pod, self.freeze]

    async def fail_pod(self) -> None:
        """Let a container fail; the pod's object stays."""
        status = {"phase": "Failed", "containerStatuses": []}
        self.admin.patch("pods", NAMESPACE, self._any("pods"), {"status": status}, "status")

    async def freeze(self) -> None:
        """Create or delete the DowngradePlan."""
        if self.admin.find("downgradeplans", "", "claimctl") is not None:
            self.admin.delete("downgradeplans", "", "claimctl")
        else:
            self.admin.create("downgradeplans", {"metadata": {"name": "claimctl"}, "spec": {}})
