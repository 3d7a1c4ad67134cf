"""Named Go types of fields that are plain strings in JSON, as the decoder names them.

Keys are ``Model.jsonField`` with the model's name as in the ``kubernetes`` package.
"""

from __future__ import annotations

_DEVICES = ("V1", "V1beta1", "V1beta2")
NAMED: dict[str, str] = {
    "V1Container.imagePullPolicy": "v1.PullPolicy",
    "V1Container.restartPolicy": "v1.ContainerRestartPolicy",
    "V1Container.terminationMessagePolicy": "v1.TerminationMessagePolicy",
    "V1ContainerPort.protocol": "v1.Protocol",
    "V1CronJobSpec.concurrencyPolicy": "v1.ConcurrencyPolicy",
    "V1DaemonSetUpdateStrategy.type": "v1.DaemonSetUpdateStrategyType",
    "V1DeploymentStrategy.type": "v1.DeploymentStrategyType",
    "V1JobSpec.completionMode": "v1.CompletionMode",
    "V1JobSpec.podReplacementPolicy": "v1.PodReplacementPolicy",
    "V1LabelSelectorRequirement.operator": "v1.LabelSelectorOperator",
    "V1NamespaceStatus.phase": "v1.NamespacePhase",
    "V1NodeAddress.type": "v1.NodeAddressType",
    "V1NodeCondition.status": "v1.ConditionStatus",
    "V1NodeCondition.type": "v1.NodeConditionType",
    "V1NodeSelectorRequirement.operator": "v1.NodeSelectorOperator",
    "V1ObjectMeta.uid": "types.UID",
    "V1OwnerReference.uid": "types.UID",
    "V1PodCondition.status": "v1.ConditionStatus",
    "V1PodCondition.type": "v1.PodConditionType",
    "V1PodDisruptionBudgetSpec.unhealthyPodEvictionPolicy": "v1.UnhealthyPodEvictionPolicyType",
    "V1PodFailurePolicyOnExitCodesRequirement.operator": ("v1.PodFailurePolicyOnExitCodesOperator"),
    "V1PodFailurePolicyRule.action": "v1.PodFailurePolicyAction",
    "V1PodSpec.dnsPolicy": "v1.DNSPolicy",
    "V1PodSpec.preemptionPolicy": "v1.PreemptionPolicy",
    "V1PodSpec.restartPolicy": "v1.RestartPolicy",
    "V1PodStatus.phase": "v1.PodPhase",
    "V1PriorityClass.preemptionPolicy": "v1.PreemptionPolicy",
    "V1Secret.type": "v1.SecretType",
    "V1StatefulSetPersistentVolumeClaimRetentionPolicy.whenDeleted": (
        "v1.PersistentVolumeClaimRetentionPolicyType"
    ),
    "V1StatefulSetPersistentVolumeClaimRetentionPolicy.whenScaled": (
        "v1.PersistentVolumeClaimRetentionPolicyType"
    ),
    "V1StatefulSetSpec.podManagementPolicy": "v1.PodManagementPolicyType",
    "V1StatefulSetUpdateStrategy.type": "v1.StatefulSetUpdateStrategyType",
    "V1Taint.effect": "v1.TaintEffect",
    "V1Toleration.effect": "v1.TaintEffect",
    "V1Toleration.operator": "v1.TolerationOperator",
}
for _version in _DEVICES:
    _short = _version.lower()
    NAMED |= {
        f"{_version}DeviceConstraint.matchAttribute": f"{_short}.FullyQualifiedName",
        f"{_version}DeviceRequest.allocationMode": f"{_short}.DeviceAllocationMode",
        f"{_version}ExactDeviceRequest.allocationMode": f"{_short}.DeviceAllocationMode",
        f"{_version}ResourceClaimConsumerReference.uid": "types.UID",
    }
