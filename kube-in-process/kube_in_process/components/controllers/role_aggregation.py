"""Fill in the rules of ClusterRoles that aggregate others."""

from __future__ import annotations

from kube_in_process.auth.aggregation import AGGREGATION, aggregated_rules
from kube_in_process.auth.rbac import GROUP
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component
from kube_in_process.storage.store import Revision

_PLURAL = "clusterroles"


class RoleAggregationController(Component[str]):
    """Its one key stands for all roles, because a change of one can change many."""

    name = "clusterrole-aggregation-controller"
    manager = AGGREGATION

    def watch(self) -> None:
        self.context.feed.listen(self._take)

    def _take(self, revision: Revision, _: Object) -> None:
        if revision.plural == _PLURAL:
            self.queue.add(_PLURAL)

    def sync(self, key: str) -> None:
        roles = self.api.list(_PLURAL)
        for role in roles:
            rules = aggregated_rules(role, roles)
            if rules is not None and rules != (role.get("rules") or []):
                applied = {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "rules": rules}
                self.api.patch(_PLURAL, "", role["metadata"]["name"], applied, kind="apply")
