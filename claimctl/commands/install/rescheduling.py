"""The manifests of ``claimctl reschedule`` in the cluster: which of them, and with what in them."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from claimctl.wire.base import Object

SCHEDULE = "*/30 * * * *"
"""The schedule in the files: every half an hour."""
POLICY_KEY = "policy.yaml"
"""The key of the ConfigMap with the policy."""
DRY_RUN = "--dry-run"
INTERVAL = "--descheduling-interval"
CHECKSUM = "checksum/policy"
"""The annotation of the Deployment's pods that replaces them when the policy changes."""


@dataclass(frozen=True, slots=True)
class Rescheduling:
    """How ``claimctl reschedule`` runs in the cluster.

    Attributes:
        policy: the text of a policy file.
        schedule: the schedule of a CronJob in cron's form, in the time zone of
            kube-controller-manager.
        interval: if not '', a Deployment runs again and again with this pause, a duration such as
            5m, and ``schedule`` does not count.
        evicts: whether runs act; otherwise they only say what they would do.
    """

    policy: str
    schedule: str = SCHEDULE
    interval: str = ""
    evicts: bool = False

    @property
    def components(self) -> tuple[str, ...]:
        """The names of its parts in ``components.RESCHEDULER_FOLDERS``, in their order."""
        runs = "rescheduler-loop" if self.interval else "rescheduler-cronjob"
        return "rescheduler-rights", "rescheduler", runs


def filled_in(document: Object, wanted: Rescheduling) -> Object:
    """The document with what is wanted in it. It is changed in place."""
    if document["kind"] == "ConfigMap":
        document["data"] = {POLICY_KEY: wanted.policy}
    if document["kind"] == "CronJob":
        document["spec"]["schedule"] = wanted.schedule
    if document["kind"] == "Deployment":
        checksum = sha256(wanted.policy.encode()).hexdigest()
        document["spec"]["template"]["metadata"]["annotations"] = {CHECKSUM: checksum}
    for container in containers(document):
        container["args"] = [
            f"{INTERVAL}={wanted.interval}" if argument.startswith(f"{INTERVAL}=") else argument
            for argument in container["args"]
            if argument != DRY_RUN or not wanted.evicts
        ]
    return document


def pod_spec(document: Object) -> dict[str, Any]:
    """The pod template's spec of a Deployment or a CronJob; {} for other kinds."""
    spec = document.get("spec", {})
    spec = spec.get("jobTemplate", {}).get("spec", spec)
    pod_template: dict[str, Any] = spec.get("template", {}).get("spec", {})
    return pod_template


def containers(document: Object) -> list[dict[str, Any]]:
    return list(pod_spec(document).get("containers", ()))
