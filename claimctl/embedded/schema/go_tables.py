"""Which fields Go writes although they are empty, and which it leaves out.

A field of a Go struct that is a value without ``omitempty`` is always written; one with it is left
out when it is empty; a pointer is written whenever it is set. The served OpenAPI documents tell the
first kind by their defaults; which of the others are pointers is a fact of the Go types.
Keys are ``Model.jsonField`` with the model's name as in the ``kubernetes`` package.
"""

from __future__ import annotations


def _fields(table: dict[str, str]) -> frozenset[str]:
    return frozenset(f"{model}.{name}" for model, names in table.items() for name in names.split())


STRUCTS = _fields(
    {
        "CoreV1Event": "involvedObject metadata source",
        "EventsV1Event": "deprecatedSource metadata regarding",
        "ResourceV1ResourceClaim": "metadata spec status",
        "V1AllocationResult": "devices",
        "V1Binding": "metadata target",
        "V1ClusterRole": "metadata",
        "V1ClusterRoleBinding": "metadata roleRef",
        "V1ConfigMap": "metadata",
        "V1Container": "resources",
        "V1ContainerStatus": "lastState state",
        "V1ControllerRevision": "metadata",
        "V1CronJob": "metadata spec status",
        "V1CronJobSpec": "jobTemplate",
        "V1DaemonSet": "metadata spec status",
        "V1DaemonSetSpec": "template updateStrategy",
        "V1Deployment": "metadata spec status",
        "V1DeploymentSpec": "strategy template",
        "V1DeviceClass": "metadata spec",
        "V1EphemeralContainer": "resources",
        "V1Eviction": "metadata",
        "V1Job": "metadata spec status",
        "V1JobSpec": "template",
        "V1JobTemplateSpec": "metadata spec",
        "V1Lease": "metadata spec",
        "V1Namespace": "metadata spec status",
        "V1Node": "metadata spec status",
        "V1NodeDaemonEndpoints": "kubeletEndpoint",
        "V1NodeStatus": "daemonEndpoints nodeInfo",
        "V1PersistentVolumeClaim": "metadata spec status",
        "V1PersistentVolumeClaimSpec": "resources",
        "V1PersistentVolumeClaimTemplate": "metadata spec",
        "V1Pod": "metadata spec status",
        "V1PodDisruptionBudget": "metadata spec status",
        "V1PodTemplateSpec": "metadata spec",
        "V1PreferredSchedulingTerm": "preference",
        "V1PriorityClass": "metadata",
        "V1ReplicaSet": "metadata spec status",
        "V1ReplicaSetSpec": "template",
        "V1ResourceClaimSpec": "devices",
        "V1ResourceClaimTemplate": "metadata spec",
        "V1ResourceClaimTemplateSpec": "metadata spec",
        "V1ResourceSlice": "metadata spec",
        "V1ResourceSliceSpec": "pool",
        "V1Role": "metadata",
        "V1RoleBinding": "metadata roleRef",
        "V1Scale": "metadata spec status",
        "V1Secret": "metadata",
        "V1ServiceAccount": "metadata",
        "V1StatefulSet": "metadata spec status",
        "V1StatefulSetSpec": "template updateStrategy",
        "V1WeightedPodAffinityTerm": "podAffinityTerm",
        "V1alpha2PodGroup": "spec status",
        "V1alpha2PodGroupSpec": "schedulingPolicy",
        "V1alpha2PodGroupTemplate": "schedulingPolicy",
        "V1alpha2Workload": "spec",
        "V1beta1AllocationResult": "devices",
        "V1beta1DeviceClass": "metadata spec",
        "V1beta1ResourceClaim": "metadata spec status",
        "V1beta1ResourceClaimSpec": "devices",
        "V1beta1ResourceClaimTemplate": "metadata spec",
        "V1beta1ResourceClaimTemplateSpec": "metadata spec",
        "V1beta1ResourceSlice": "metadata spec",
        "V1beta1ResourceSliceSpec": "pool",
        "V1beta2AllocationResult": "devices",
        "V1beta2DeviceClass": "metadata spec",
        "V1beta2ResourceClaim": "metadata spec status",
        "V1beta2ResourceClaimSpec": "devices",
        "V1beta2ResourceClaimTemplate": "metadata spec",
        "V1beta2ResourceClaimTemplateSpec": "metadata spec",
        "V1beta2ResourceSlice": "metadata spec",
        "V1beta2ResourceSliceSpec": "pool",
    }
)
"""Structs by value: an empty one is an empty object, never absent."""

ZEROES = _fields(
    {
        "CoreV1Event": "reportingComponent reportingInstance",
        "V1FileKeySelector": "optional",
        "V1GRPCAction": "service",
        "V1NodeRuntimeHandler": "name",
        "V1PodDisruptionBudgetStatus": (
            "currentHealthy desiredHealthy disruptionsAllowed expectedPods"
        ),
        "V1PodFailurePolicyOnPodConditionsPattern": "status",
        "V1PriorityClass": "value",
        "V1StatefulSetOrdinals": "start",
        "V1StatefulSetSpec": "serviceName",
        "V1StatefulSetStatus": "availableReplicas",
    }
)
"""Scalars that are written when they are zero, beside the required ones."""

NULLS = _fields(
    {
        "V1AllocatedDeviceStatus": "conditions",
        "V1ClusterRole": "rules",
        "V1DeviceClaim": "requests",
        "V1NodeSelector": "nodeSelectorTerms",
        "V1PodFailurePolicy": "rules",
        "V1PodFailurePolicyOnExitCodesRequirement": "values",
        "V1PodSpec": "containers",
        "V1PolicyRule": "verbs",
        "V1Role": "rules",
        "V1SuccessPolicy": "rules",
        "V1alpha2WorkloadSpec": "podGroupTemplates",
        "V1beta1AllocatedDeviceStatus": "conditions",
        "V1beta1DeviceClaim": "requests",
        "V1beta2AllocatedDeviceStatus": "conditions",
        "V1beta2DeviceClaim": "requests",
    }
)
"""Lists and maps that are null when they are empty; all others are left out then."""

POINTERS = _fields(
    {
        "V1AllocatedDeviceStatus": "shareID",
        "V1AppArmorProfile": "localhostProfile",
        "V1CSIVolumeSource": "fsType",
        "V1Container": "restartPolicy",
        "V1ContainerStatus": "stopSignal",
        "V1CronJobSpec": "timeZone",
        "V1Device": "nodeName",
        "V1DeviceAttribute": "string version",
        "V1DeviceClassSpec": "extendedResourceName",
        "V1DeviceConstraint": "distinctAttribute matchAttribute",
        "V1DeviceRequestAllocationResult": "shareID",
        "V1GRPCAction": "service",
        "V1HostPathVolumeSource": "type",
        "V1JobSpec": "completionMode managedBy podReplacementPolicy",
        "V1JobStatus": "failedIndexes",
        "V1LeaseSpec": "holderIdentity preferredHolder strategy",
        "V1Lifecycle": "stopSignal",
        "V1PersistentVolumeClaimSpec": "storageClassName volumeAttributesClassName volumeMode",
        "V1PodDNSConfigOption": "value",
        "V1PodDisruptionBudgetSpec": "unhealthyPodEvictionPolicy",
        "V1PodFailurePolicyOnExitCodesRequirement": "containerName",
        "V1PodResourceClaim": "resourceClaimName resourceClaimTemplateName",
        "V1PodResourceClaimStatus": "resourceClaimName",
        "V1PodSchedulingGroup": "podGroupName",
        "V1PodSecurityContext": "fsGroupChangePolicy seLinuxChangePolicy supplementalGroupsPolicy",
        "V1PodSpec": "hostnameOverride preemptionPolicy runtimeClassName",
        "V1PriorityClass": "preemptionPolicy",
        "V1ResourceSliceSpec": "nodeName",
        "V1SeccompProfile": "localhostProfile",
        "V1SecurityContext": "procMount",
        "V1ServicePort": "appProtocol",
        "V1SuccessPolicyRule": "succeededIndexes",
        "V1TopologySpreadConstraint": "nodeAffinityPolicy nodeTaintsPolicy",
        "V1TypedLocalObjectReference": "apiGroup",
        "V1VolumeMount": "mountPropagation recursiveReadOnly",
        "V1beta1Device": "nodeName",
        "V1beta1DeviceAttribute": "string version",
        "V1beta1DeviceConstraint": "matchAttribute",
    }
)
"""Optional strings that are pointers: an empty one is kept."""

PLAIN = _fields(
    {
        "CoreV1Event": "count",
        "CoreV1EventSeries": "count",
        "EventsV1Event": "deprecatedCount",
        "V1Condition": "observedGeneration",
        "V1Container": "stdin stdinOnce tty",
        "V1ContainerImage": "sizeBytes",
        "V1ContainerPort": "hostPort",
        "V1ContainerStateTerminated": "signal",
        "V1DaemonSetSpec": "minReadySeconds",
        "V1DaemonSetStatus": (
            "numberAvailable numberUnavailable observedGeneration updatedNumberScheduled"
        ),
        "V1DeploymentSpec": "minReadySeconds paused",
        "V1DeploymentStatus": (
            "availableReplicas observedGeneration readyReplicas replicas "
            "unavailableReplicas updatedReplicas"
        ),
        "V1DeviceSubRequest": "count",
        "V1EphemeralContainer": "stdin stdinOnce tty",
        "V1ExactDeviceRequest": "count",
        "V1JobStatus": "active failed succeeded",
        "V1NFSVolumeSource": "readOnly",
        "V1NodeSpec": "unschedulable",
        "V1ObjectMeta": "generation",
        "V1PersistentVolumeClaimVolumeSource": "readOnly",
        "V1PodCondition": "observedGeneration",
        "V1PodDisruptionBudgetStatus": "observedGeneration",
        "V1PodSpec": "hostIPC hostNetwork hostPID",
        "V1PodStatus": "observedGeneration",
        "V1PriorityClass": "globalDefault",
        "V1Probe": (
            "failureThreshold initialDelaySeconds periodSeconds successThreshold timeoutSeconds"
        ),
        "V1ReplicaSetSpec": "minReadySeconds",
        "V1ReplicaSetStatus": (
            "availableReplicas fullyLabeledReplicas observedGeneration readyReplicas"
        ),
        "V1StatefulSetSpec": "minReadySeconds",
        "V1StatefulSetStatus": "currentReplicas observedGeneration readyReplicas updatedReplicas",
        "V1VolumeMount": "readOnly",
        "V1VolumeMountStatus": "readOnly",
        "V1beta1DeviceRequest": "count",
        "V1beta1ResourceSliceSpec": "allNodes",
        "V1beta2DeviceSubRequest": "count",
        "V1beta2ExactDeviceRequest": "count",
        "V1beta2ResourceSliceSpec": "allNodes",
    }
)
"""Optional numbers and booleans that are values: zero and false are left out."""
