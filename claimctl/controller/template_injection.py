"""Put a workload's pods into a PodGroup, if the workload asks for it and the settings allow it."""

from __future__ import annotations

import hashlib

import structlog
from cachetools import LRUCache

from claimctl.controller.events import subject_of
from claimctl.controller.keys import WorkloadKey
from claimctl.controller.snapshots import Knowledge
from claimctl.kube.client import Client
from claimctl.kube.errors import Conflict, Forbidden, Invalid, NotFound
from claimctl.kube.events import EventRecorder
from claimctl.reservation.annotation import MAX_NAME
from claimctl.reservation.facts.dialects import DIALECTS
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.workloads import INJECT, named_claims
from claimctl.wire.reservations import POD_GROUP_ANNOTATION
from claimctl.wire.resources import WORKLOADS
from claimctl.wire.workloads import CustomWorkload, Workload, has_fixed_template, template_of

log = structlog.get_logger(__name__)

REMEMBERED = 10_000
_HASH_LENGTH = 10
_ROLE = "flag --allow-template-injection and ClusterRole claimctl-template-injection"


class Injector:
    """Adds ``spec.schedulingGroup`` to a pod template, once per workload: it rolls the pods."""

    def __init__(
        self, client: Client, knowledge: Knowledge, events: EventRecorder, *, allowed: bool
    ) -> None:
        self._client = client
        self._know = knowledge
        self._events = events
        self._allowed = allowed
        self._tried: LRUCache[str, None] = LRUCache(REMEMBERED)

    async def inject(self, key: WorkloadKey, workload: Workload) -> bool:
        """Patch the template if that is wanted, useful and allowed; else report what is missing.

        Returns:
            False if another client wrote the workload first. The caller must then try again,
            because a change of the status alone does not trigger a reconcile.
        """
        asked = workload.metadata.annotation(POD_GROUP_ANNOTATION)
        if asked is None or workload.metadata.deleting:
            return True
        if not DIALECTS[self._know.rules.dialect].groups or template_of(workload).spec.group_name:
            return True
        claims = self._reserved(key, workload)
        if not claims:
            return True
        against = self._against(asked, workload)
        if against is not None:
            self._report(key, workload, *against)
        elif workload.metadata.uid not in self._tried:
            return await self._patch(key, workload, group_name(key, claims))
        return True

    def _reserved(self, key: WorkloadKey, workload: Workload) -> tuple[str, ...]:
        reserved = {
            reservation.spec.resource_claim_name
            for reservation in self._know.caches.reservations_for(key)
            if not reservation.metadata.deleting
        }
        return tuple(claim for claim in named_claims(template_of(workload)) if claim in reserved)

    def _against(self, asked: str, workload: Workload) -> tuple[Reason, str] | None:
        if asked != INJECT:
            note = f'{POD_GROUP_ANNOTATION}: "{asked[:80]}" is not: {INJECT}'
            return Reason.INVALID_ANNOTATION, note
        if has_fixed_template(workload):
            note = "this pod template can never be changed: recreate the workload"
            return Reason.POD_TEMPLATE_IMMUTABLE, f"{note} with spec.schedulingGroup"
        if isinstance(workload, CustomWorkload):
            note = "claimctl changes the pod templates of Deployments and StatefulSets only"
            return Reason.TEMPLATE_INJECTION_OFF, f"{note}: set spec.schedulingGroup there yourself"
        if not self._allowed:
            return (
                Reason.TEMPLATE_INJECTION_OFF,
                f"the controller may not change templates: {_ROLE}",
            )
        return None

    async def _patch(self, key: WorkloadKey, workload: Workload, group: str) -> bool:
        spec = {"template": {"spec": {"schedulingGroup": {"podGroupName": group}}}}
        try:
            written = await self._client.merge_patch(
                WORKLOADS[key.api_group, key.kind], workload.metadata, {"spec": spec}
            )
        except Conflict:
            return False
        except NotFound:
            return True
        except (Forbidden, Invalid) as error:
            self._report(key, workload, Reason.TEMPLATE_INJECTION_OFF, f"{error}; needs {_ROLE}")
            raise
        self._tried[workload.metadata.uid] = None
        if template_of(written).spec.group_name != group:
            note = "the API server drops spec.schedulingGroup from pod templates"
            self._report(key, workload, Reason.NO_SCHEDULING_GROUP, note)
        log.info("pod template changed", group=group)
        return True

    def _report(self, key: WorkloadKey, workload: Workload, reason: Reason, note: str) -> None:
        subject = subject_of(key, workload)
        self._events.record(
            subject, type="Warning", reason=reason, note=note, action="InjectPodGroup"
        )


def group_name(key: WorkloadKey, claims: tuple[str, ...]) -> str:
    """The group's name. Each set of claims has another name: a group's claims are immutable."""
    text = "/".join((key.api_group, key.kind, key.name, *claims))
    digest = hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]
    stem = key.name[: MAX_NAME - _HASH_LENGTH - 1].rstrip("-.")
    return f"{stem}-{digest}"
