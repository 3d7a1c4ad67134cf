"""The cells of the table: a workload, whether its claims are held, and how its node is closed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from claimctl.wire.base import Object
from labs.cells import CELL_LABEL, LONG_RUN, document

TAINT = {"key": "claimctl.io/closed", "value": "measured", "effect": "NoSchedule"}


class Closing(StrEnum):
    """What is done to the pod's node before the eviction."""

    NOTHING = "open"
    CORDON = "cordoned"
    TAINT = "tainted"

    def patch(self, *, close: bool) -> Object:
        """The merge patch of the Node that closes it or opens it again."""
        if self is Closing.CORDON:
            return {"spec": {"unschedulable": True if close else None}}
        if self is Closing.TAINT:
            return {"spec": {"taints": [TAINT] if close else None}}
        return {"metadata": {"annotations": {}}}


@dataclass(frozen=True, slots=True)
class MovedWorkload:
    """A row of the table."""

    name: str
    """The text of the row."""
    kind: str = "Deployment"
    replicas: int = 1
    claims: int = 1
    """How many named claims each pod uses."""
    held: tuple[int, ...] = (0,)
    """Which of them are held, in the cells with a hold; none: there are no such cells."""
    held_as: str = "held"
    """How the text of a row says that claims are held."""
    free: bool = True
    """Whether there are cells without a hold, too."""
    generated: bool = False
    """Whether the claim is generated from a template for each pod instead."""
    evicted: int = 1
    """How many pods are evicted at once."""
    replacement: str = ""
    """podReplacementPolicy of a Job."""

    @property
    def is_job(self) -> bool:
        return self.kind == "Job"

    @property
    def api_version(self) -> str:
        return "batch/v1" if self.is_job else "apps/v1"


WORKLOADS = (
    MovedWorkload("Deployment, one claim"),
    MovedWorkload("Deployment, two claims", claims=2, held=(0, 1), held_as="both held"),
    MovedWorkload("Deployment, two claims", claims=2, held=(1,), held_as="one held", free=False),
    MovedWorkload("Deployment, 2 pods share a claim, one is evicted", replicas=2),
    MovedWorkload("Deployment, 2 pods share a claim, both are evicted", replicas=2, evicted=2),
    MovedWorkload("Deployment, a claim generated for each pod", held=(), generated=True),
    MovedWorkload("StatefulSet, one claim", kind="StatefulSet"),
    MovedWorkload("Job, one claim", kind="Job"),
    MovedWorkload(
        "Job that replaces only failed pods, one claim", kind="Job", replacement="Failed"
    ),
)


@dataclass(frozen=True, slots=True)
class EvictionCell:
    number: int
    workload: MovedWorkload
    held: bool
    closing: Closing

    @property
    def namespace(self) -> str:
        return f"cell-{self.number}"

    @property
    def row(self) -> str:
        """The text of its row."""
        return f"{self.workload.name}, {self.workload.held_as}" if self.held else self.workload.name

    @property
    def claim_names(self) -> list[str]:
        wanted = 0 if self.workload.generated else self.workload.claims
        return [f"claim-{index}" for index in range(wanted)]

    @property
    def held_claims(self) -> list[str]:
        return [self.claim_names[index] for index in self.workload.held] if self.held else []

    def workload_body(self, name: str) -> Object:
        """The workload: its pods use only the nodes of this cell."""
        shape = self.workload
        labels = {"app": name}
        template = {
            "metadata": {"labels": labels, "annotations": LONG_RUN},
            "spec": self._pod_spec(),
        }
        spec: Object = {"template": template}
        if shape.is_job:
            spec |= {"parallelism": shape.replicas, "completions": shape.replicas}
            spec |= {"backoffLimit": 100}
            if shape.replacement:
                spec["podReplacementPolicy"] = shape.replacement
        else:
            spec |= {"replicas": shape.replicas, "selector": {"matchLabels": labels}}
        if shape.kind == "StatefulSet":
            spec["serviceName"] = name
        return document(shape.api_version, shape.kind, name, self.namespace, spec)

    def _pod_spec(self) -> Object:
        if self.workload.generated:
            uses = [{"name": "claim-0", "resourceClaimTemplateName": "each"}]
        else:
            uses = [{"name": name, "resourceClaimName": name} for name in self.claim_names]
        container = {
            "name": "main",
            "image": "registry.example/train:1",
            "resources": {"claims": [{"name": use["name"]} for use in uses]},
        }
        return {
            "restartPolicy": "Never" if self.workload.is_job else "Always",
            "nodeSelector": {CELL_LABEL: self.namespace},
            "containers": [container],
            "resourceClaims": uses,
        }

    def claim_bodies(self, api_version: str, device_class: str) -> Iterator[Object]:
        """The named claims, or the template."""
        request: Object = {"deviceClassName": device_class}
        # v1beta1 has the request itself where later versions have ``exactly``
        shape = request if api_version.endswith("v1beta1") else {"exactly": request}
        spec = {"devices": {"requests": [{"name": "gpu", **shape}]}}
        if self.workload.generated:
            kind = "ResourceClaimTemplate"
            yield document(api_version, kind, "each", self.namespace, {"spec": spec})
        for name in self.claim_names:
            yield document(api_version, "ResourceClaim", name, self.namespace, spec)


def cells() -> list[EvictionCell]:
    """All cells of the table, row by row."""
    choices = [
        (workload, held, closing)
        for workload in WORKLOADS
        for held in (False, True)
        if (workload.held if held else workload.free)
        for closing in Closing
    ]
    return [EvictionCell(number, *choice) for number, choice in enumerate(choices)]
