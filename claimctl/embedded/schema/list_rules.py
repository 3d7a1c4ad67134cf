"""What the models of the official client do not tell about lists, maps and formats.

The entries are facts of the Kubernetes API (the list types and patch strategies of its Go types).
Keys are ``Model.jsonField`` with the model's name as in the ``kubernetes`` package.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListRule:
    list_type: str
    keys: tuple[str, ...] = ()
    strategy: str = ""
    merge_key: str = ""


def _map(*keys: str, merge_key: str = "", strategy: str = "merge") -> ListRule:
    return ListRule("map", keys, strategy, merge_key or keys[0])


def _map_only(*keys: str) -> ListRule:
    return ListRule("map", keys)


_NAME = _map("name")
_CONDITIONS = _map("type")
_KEEP_KEYS = _map("name", strategy="merge,retainKeys")
_SET = ListRule("set", (), "merge", "")

LISTS: dict[str, ListRule] = {
    "V1ObjectMeta.ownerReferences": _map("uid"),
    "V1ObjectMeta.finalizers": _SET,
    "V1PodSpec.containers": _NAME,
    "V1PodSpec.initContainers": _NAME,
    "V1PodSpec.ephemeralContainers": _NAME,
    "V1PodSpec.volumes": _KEEP_KEYS,
    "V1PodSpec.imagePullSecrets": _NAME,
    "V1PodSpec.hostAliases": _map("ip"),
    "V1PodSpec.topologySpreadConstraints": _map(
        "topologyKey", "whenUnsatisfiable", merge_key="topologyKey"
    ),
    "V1PodSpec.resourceClaims": _KEEP_KEYS,
    "V1PodSpec.schedulingGates": _NAME,
    "V1PodStatus.podIPs": _map("ip"),
    "V1PodStatus.resourceClaimStatuses": _KEEP_KEYS,
    "V1Container.ports": _map("containerPort", "protocol", merge_key="containerPort"),
    "V1Container.env": _NAME,
    "V1Container.volumeMounts": _map("mountPath"),
    "V1Container.volumeDevices": _map("devicePath"),
    "V1Container.resizePolicy": ListRule("atomic"),
    "V1EphemeralContainer.ports": _map("containerPort", "protocol", merge_key="containerPort"),
    "V1EphemeralContainer.env": _NAME,
    "V1EphemeralContainer.volumeMounts": _map("mountPath"),
    "V1EphemeralContainer.volumeDevices": _map("devicePath"),
    "V1ResourceRequirements.claims": _map_only("name"),
    "V1ServiceSpec.ports": _map("port", "protocol", merge_key="port"),
    "V1LoadBalancerStatus.ingress": ListRule("atomic"),
    "V1ServiceAccount.secrets": _NAME,
    "V1NodeSpec.taints": ListRule("atomic"),
    "V1NodeSpec.podCIDRs": _SET,
    "V1NodeStatus.addresses": _CONDITIONS,
    "V1NamespaceSpec.finalizers": ListRule("atomic"),
    "V1ResourceClaimStatus.reservedFor": _map("uid"),
    "V1ResourceClaimStatus.devices": _map_only("driver", "device", "pool", "shareID"),
    "V1AllocatedDeviceStatus.conditions": _map_only("type"),
    "V1ContainerStatus.allocatedResourcesStatus": _map_only("name"),
    "V1MutatingWebhookConfiguration.webhooks": _NAME,
    "V1ValidatingWebhookConfiguration.webhooks": _NAME,
    "V1CustomResourceDefinitionStatus.conditions": _map_only("type"),
    "V1JSONSchemaProps.x-kubernetes-validations": _map("rule"),
    "V1ReplicaSetStatus.conditions": _CONDITIONS,
    "V1JobStatus.conditions": ListRule("atomic", (), "merge", "type"),
}

ANY_CONDITIONS = _CONDITIONS
"""For a field ``conditions`` whose items are a model with a ``type``."""

KEEP_KEYS_FIELDS = frozenset({"V1DeploymentSpec.strategy"})
"""Objects of which a strategic merge patch may say which keys stay (patchStrategy retainKeys)."""

ATOMIC_OBJECTS = frozenset(
    {
        "V1LabelSelector",
        "V1NodeSelector",
        "V1NodeSelectorTerm",
        "V1ObjectReference",
        "V1LocalObjectReference",
        "V1TypedLocalObjectReference",
        "V1OwnerReference",
        "V1ConfigMapKeySelector",
        "V1SecretKeySelector",
        "V1ObjectFieldSelector",
        "V1ResourceFieldSelector",
        "RbacV1Subject",
        "V1RoleRef",
    }
)
"""Owned as a whole (mapType atomic)."""

ATOMIC_MAPS = frozenset({"V1PodSpec.nodeSelector", "V1ServiceSpec.selector"})

QUANTITY_MAPS = frozenset(
    {
        "allocatable",
        "allocatedResources",
        "capacity",
        "consumedCapacity",
        "hard",
        "limits",
        "overhead",
        "podFixed",
        "requests",
        "used",
    }
)
_DEVICE_QUANTITIES = (
    "CapacityRequestPolicy.default",
    "CapacityRequestPolicyRange.max",
    "CapacityRequestPolicyRange.min",
    "CapacityRequestPolicyRange.step",
    "Counter.value",
    "DeviceCapacity.value",
)
QUANTITIES = frozenset(
    {
        "V1EmptyDirVolumeSource.sizeLimit",
        "V1ResourceFieldSelector.divisor",
        *(f"V1{name}" for name in _DEVICE_QUANTITIES),
        *(f"V1beta1{name}" for name in _DEVICE_QUANTITIES),
        *(f"V1beta2{name}" for name in _DEVICE_QUANTITIES),
    }
)
"""Quantities on their own."""

MICRO_TIMES = frozenset(
    {
        "V1LeaseSpec.acquireTime",
        "V1LeaseSpec.renewTime",
        "CoreV1Event.eventTime",
        "EventsV1Event.eventTime",
        "CoreV1EventSeries.lastObservedTime",
        "EventsV1EventSeries.lastObservedTime",
    }
)

INT_OR_STRING = frozenset(
    {
        "V1ServicePort.targetPort",
        "V1HTTPGetAction.port",
        "V1TCPSocketAction.port",
        "V1RollingUpdateDeployment.maxSurge",
        "V1RollingUpdateDeployment.maxUnavailable",
        "V1RollingUpdateDaemonSet.maxSurge",
        "V1RollingUpdateDaemonSet.maxUnavailable",
        "V1RollingUpdateStatefulSetStrategy.maxUnavailable",
        "V1PodDisruptionBudgetSpec.maxUnavailable",
        "V1PodDisruptionBudgetSpec.minAvailable",
    }
)

INT64 = frozenset(
    {
        "activeDeadlineSeconds",
        "capacity",
        "deletionGracePeriodSeconds",
        "fsGroup",
        "generation",
        "gid",
        "gracePeriodSeconds",
        "int",
        "maxItems",
        "maxLength",
        "maxProperties",
        "minItems",
        "minLength",
        "minProperties",
        "observedGeneration",
        "remainingItemCount",
        "resourceSliceCount",
        "revision",
        "runAsGroup",
        "runAsUser",
        "sizeBytes",
        "startingDeadlineSeconds",
        "terminationGracePeriodSeconds",
        "tolerationSeconds",
        "uid",
        *(f"V1{prefix}DeviceRequest.count" for prefix in ("Exact", "")),
        *(
            f"V1beta{n}{kind}.count"
            for n in (1, 2)
            for kind in ("DeviceRequest", "ExactDeviceRequest")
        ),
        "V1DeviceSubRequest.count",
        "V1TokenRequestSpec.expirationSeconds",
        "V1ServiceAccountTokenProjection.expirationSeconds",
        "AuthenticationV1TokenRequestSpec.expirationSeconds",
    }
)
"""Fields of 64 bits, by their name where that is so in every model that has it."""

META_MODELS = frozenset(
    {
        "V1ObjectMeta",
        "V1ListMeta",
        "V1OwnerReference",
        "V1ManagedFieldsEntry",
        "V1LabelSelector",
        "V1LabelSelectorRequirement",
        "V1Condition",
        "V1DeleteOptions",
        "V1Preconditions",
        "V1Status",
        "V1StatusDetails",
        "V1StatusCause",
        "V1FieldSelectorRequirement",
    }
)
"""Models of apimachinery; every other one belongs to the group in which it is first met."""

LISTS.update(
    {
        "V1alpha2PodGroupSpec.resourceClaims": _KEEP_KEYS,
        "V1alpha2PodGroupTemplate.resourceClaims": _KEEP_KEYS,
        "V1alpha2PodGroupStatus.resourceClaimStatuses": _KEEP_KEYS,
        "V1alpha2WorkloadSpec.podGroupTemplates": _map_only("name"),
        "V1alpha2PodGroupSchedulingConstraints.topology": ListRule("atomic"),
    }
)
