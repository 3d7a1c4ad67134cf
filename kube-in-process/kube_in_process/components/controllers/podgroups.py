"""Protect PodGroups: one that is being deleted stays until its last pod has ended."""

from __future__ import annotations

from kube_in_process.components.objects import deleting, finalizers, key_of, without
from kube_in_process.components.pods import ended, group_key, group_name
from kube_in_process.runtime.component import Component
from kube_in_process.runtime.views import Change, Key

PROTECTION = "scheduling.k8s.io/podgroup-protection"


class PodGroupController(Component[Key]):
    name = "podgroup-protection-controller"

    def watch(self) -> None:
        self.views["pods"].index("group", group_key)
        self.views["podgroups"].subscribe(lambda change: self.queue.add(change.key))
        self.views["pods"].subscribe(self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        if group_name(change.object) and (change.new is None or ended(change.new)):
            self.queue.add((change.key[0], group_name(change.object)))

    def sync(self, key: Key) -> None:
        group = self.views["podgroups"].get(*key)
        if group is None or not deleting(group) or PROTECTION not in finalizers(group):
            return
        members = self.views["pods"].by("group", "/".join(key))
        if all(ended(pod) for pod in members):
            kept = without(finalizers(group), PROTECTION)
            patch = {"metadata": {"finalizers": kept or None}}
            self.api.patch("podgroups", *key_of(group), patch)
