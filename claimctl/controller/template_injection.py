"""Put a workload's pods into a PodGroup, if the workload asks for it and the settings allow it."""

from __future__ import annotations

from cachetools import LRUCache

from claimctl.controller.events import warn
from claimctl.controller.keys import WorkloadKey
from claimctl.controller.snapshots import Knowledge
from claimctl.kube.client import Client
from claimctl.kube.errors import Conflict, Forbidden, Invalid, NotFound
from claimctl.kube.events import EventRecorder
from claimctl.reservation.annotation import Problem, hashed_name
from claimctl.reservation.facts.dialects import DIALECTS
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.workloads import INJECT, named_claims
from claimctl.telemetry.face import LateLogger
from claimctl.wire.reservations import POD_GROUP_ANNOTATION
from claimctl.wire.resources import WORKLOADS
from claimctl.wire.workloads import CustomWorkload, Workload, has_fixed_template, template_of

log = LateLogger(__name__)

REMEMBERED = 10_000
_ACTION = "InjectPodGroup"
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
            False if another client wrote the workload first: the caller must then try again.
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
            warn(self._events, key, workload, against, _ACTION)
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

    def _against(self, asked: str, workload: Workload) -> Problem | None:
        if asked != INJECT:
            note = f'{POD_GROUP_ANNOTATION}: "{asked[:80]}" is not: {INJECT}'
            return Problem(Reason.INVALID_ANNOTATION, note)
        if has_fixed_template(workload):
            note = "this pod template can never be changed: recreate the workload"
            return Problem(Reason.POD_TEMPLATE_IMMUTABLE, f"{note} with spec.schedulingGroup")
        if isinstance(workload, CustomWorkload):
            note = "claimctl changes the pod templates of Deployments and StatefulSets only"
            note += ": set spec.schedulingGroup there yourself"
            return Problem(Reason.TEMPLATE_INJECTION_OFF, note)
        if not self._allowed:
            note = f"the controller may not change templates: {_ROLE}"
            return Problem(Reason.TEMPLATE_INJECTION_OFF, note)
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
            refused = Problem(Reason.TEMPLATE_INJECTION_OFF, f"{error}; needs {_ROLE}")
            warn(self._events, key, workload, refused, _ACTION)
            raise
        self._tried[workload.metadata.uid] = None
        if template_of(written).spec.group_name != group:
            note = "the API server drops spec.schedulingGroup from pod templates"
            warn(self._events, key, workload, Problem(Reason.NO_SCHEDULING_GROUP, note), _ACTION)
        log.info("pod template changed", group=group)
        return True


def group_name(key: WorkloadKey, claims: tuple[str, ...]) -> str:
    """The group's name. Each set of claims has another name: a group's claims are immutable."""
    return hashed_name(key.name, key.api_group, key.kind, key.name, *claims)
