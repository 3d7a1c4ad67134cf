"""Fields and kinds that the official client does not have.

KEP-5194 fields (in no released server), and scheduling.k8s.io/v1alpha2, which 1.36 serves and
1.37, on which the client is built, has dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Fields = Mapping[str, tuple[str, str]]
"""JSON name -> (type as in the client's ``openapi_types``, description)."""

RESERVED_FOR_FIELDS: dict[str, Fields] = {
    "V1ResourceClaimSpec": {
        "reservedFor": (
            "V1ResourceClaimConsumerReference",
            "ReservedFor names the object that the claim is reserved for when it is allocated, "
            "instead of the pods that use it.",
        )
    },
    "V1AllocationResult": {
        "reservedForAnyPod": (
            "bool",
            "ReservedForAnyPod tells that any pod may use the allocated claim: the claim is "
            "reserved for an object other than a pod.",
        )
    },
}


@dataclass(frozen=True, slots=True)
class HandMade:
    name: str
    description: str
    fields: Fields = field(default_factory=dict)
    required: tuple[str, ...] = ()


def _root(kind: str, description: str, spec: str, status: str = "") -> HandMade:
    fields: dict[str, tuple[str, str]] = {
        "apiVersion": ("str", "APIVersion is the version of this representation of an object."),
        "kind": ("str", "Kind is the REST resource that this object stands for."),
        "metadata": ("V1ObjectMeta", "Standard object metadata."),
        "spec": (spec, f"Spec is what is wanted of the {kind}."),
    }
    if status:
        fields["status"] = (status, f"Status is what was observed of the {kind}.")
    return HandMade(f"V1alpha2{kind}", description, fields, ("spec",))


_POLICY = {
    "schedulingPolicy": ("V1alpha2PodGroupSchedulingPolicy", "How the group is scheduled."),
    "schedulingConstraints": (
        "V1alpha2PodGroupSchedulingConstraints",
        "Constraints, such as topology, on where the group is scheduled.",
    ),
    "resourceClaims": (
        "List[V1alpha2PodGroupResourceClaim]",
        "Claims that the pods of the group share; at most 4.",
    ),
    "disruptionMode": ("str", "Whether single pods or the whole group may be disrupted."),
    "priorityClassName": ("str", "The priority class of the group."),
    "priority": ("int", "The priority of the group."),
}

DEFINITIONS: dict[str, HandMade] = {
    one.name: one
    for one in (
        HandMade(
            "V1alpha2PodGroupSpec",
            "What is wanted of a PodGroup.",
            {
                "podGroupTemplateRef": (
                    "V1alpha2PodGroupTemplateReference",
                    "The template that the group was made from.",
                ),
                **_POLICY,
            },
            ("schedulingPolicy",),
        ),
        HandMade(
            "V1alpha2PodGroupStatus",
            "What was observed of a PodGroup.",
            {
                "conditions": ("List[V1Condition]", "Conditions of the group."),
                "resourceClaimStatuses": (
                    "List[V1alpha2PodGroupResourceClaimStatus]",
                    "The claims that were generated for the group.",
                ),
            },
        ),
        HandMade(
            "V1alpha2PodGroupTemplateReference",
            "Points to a template of a Workload.",
            {"workload": ("V1alpha2WorkloadPodGroupTemplateReference", "The Workload's template.")},
        ),
        HandMade(
            "V1alpha2WorkloadPodGroupTemplateReference",
            "Names a Workload and one of its templates.",
            {
                "workloadName": ("str", "Name of the Workload."),
                "podGroupTemplateName": ("str", "Name of the template in the Workload."),
            },
            ("workloadName", "podGroupTemplateName"),
        ),
        HandMade(
            "V1alpha2PodGroupSchedulingPolicy",
            "Exactly one of the policies.",
            {
                "basic": ("V1alpha2BasicSchedulingPolicy", "Pods are scheduled one by one."),
                "gang": ("V1alpha2GangSchedulingPolicy", "All or none."),
            },
        ),
        HandMade("V1alpha2BasicSchedulingPolicy", "Pods are scheduled one by one."),
        HandMade(
            "V1alpha2GangSchedulingPolicy",
            "Pods are scheduled when enough of them can be.",
            {"minCount": ("int", "How many pods must be schedulable at the same time.")},
            ("minCount",),
        ),
        HandMade(
            "V1alpha2PodGroupSchedulingConstraints",
            "Where a group may be scheduled.",
            {"topology": ("List[V1alpha2TopologyConstraint]", "Topology constraints.")},
        ),
        HandMade(
            "V1alpha2TopologyConstraint",
            "All pods in one domain of the topology.",
            {"key": ("str", "Node label that tells the domain.")},
            ("key",),
        ),
        HandMade(
            "V1alpha2PodGroupResourceClaim",
            "A claim of the group: exactly one of the two sources.",
            {
                "name": ("str", "Name of the entry, unique in the group."),
                "resourceClaimName": ("str", "Name of a ResourceClaim."),
                "resourceClaimTemplateName": ("str", "Name of a ResourceClaimTemplate."),
            },
            ("name",),
        ),
        HandMade(
            "V1alpha2PodGroupResourceClaimStatus",
            "The claim that was generated for an entry.",
            {
                "name": ("str", "Name of the entry."),
                "resourceClaimName": ("str", "Name of the generated ResourceClaim."),
            },
            ("name",),
        ),
        HandMade(
            "V1alpha2TypedLocalObjectReference",
            "Names an object of the namespace.",
            {
                "apiGroup": ("str", "Group of the object; empty for the core group."),
                "kind": ("str", "Kind of the object."),
                "name": ("str", "Name of the object."),
            },
            ("kind", "name"),
        ),
        HandMade(
            "V1alpha2WorkloadSpec",
            "What is wanted of a Workload.",
            {
                "controllerRef": ("V1alpha2TypedLocalObjectReference", "The object that made it."),
                "podGroupTemplates": (
                    "List[V1alpha2PodGroupTemplate]",
                    "Templates of the groups.",
                ),
            },
            ("podGroupTemplates",),
        ),
        HandMade(
            "V1alpha2PodGroupTemplate",
            "From which a PodGroup is made.",
            {"name": ("str", "Name, unique in the Workload."), **_POLICY},
            ("name", "schedulingPolicy"),
        ),
    )
}

HAND_MADE: dict[tuple[str, str, str], HandMade] = {
    ("scheduling.k8s.io", "v1alpha2", "PodGroup"): _root(
        "PodGroup",
        "PodGroup is a group of pods that are scheduled and that share claims together.",
        "V1alpha2PodGroupSpec",
        "V1alpha2PodGroupStatus",
    ),
    ("scheduling.k8s.io", "v1alpha2", "Workload"): _root(
        "Workload",
        "Workload holds the templates from which PodGroups are made.",
        "V1alpha2WorkloadSpec",
    ),
}
