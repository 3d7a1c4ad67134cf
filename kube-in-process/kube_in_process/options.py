"""The options of an embedded cluster. All times are in seconds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path


class Preset(StrEnum):
    """Feature gates for the sharing of ResourceClaims."""

    PLAIN = "plain"
    """The gates that are on by default."""
    POD_GROUPS = "pod-groups"
    """Pods of a PodGroup share its claims (GenericWorkload, KEP-5729)."""
    RESERVED_FOR_ANY_POD = "reserved-for-any-pod"
    """A claim may be reserved for any pod (``spec.reservedFor``, KEP-5194). No release has it."""


class Authorization(StrEnum):
    ALWAYS_ALLOW = "always-allow"
    RBAC = "rbac"


@dataclass(frozen=True, slots=True)
class Features:
    """Feature gates by component. They can be switched while the cluster runs."""

    version: tuple[int, int] = (1, 36)
    api_reserved_for: bool = False
    """KEP-5194 in the API server: spec.reservedFor and allocation.reservedForAnyPod are kept."""
    scheduler_reserved_for: bool = False
    kubelet_reserved_for: bool = False
    api_pod_groups: bool = False
    """GenericWorkload in the API server: PodGroups and the pods' schedulingGroup are served."""
    api_group_claims: bool = True
    """KEP-5729 (DRAWorkloadResourceClaims) beside it: PodGroup.spec.resourceClaims is kept."""
    scheduler_pod_groups: bool = False
    kcm_pod_groups: bool = False
    kubelet_pod_groups: bool = False
    job_pod_groups: bool = False
    """WorkloadWithJob in KCM (KEP-5547): the Job controller makes a PodGroup for each Job."""
    taint_rules: bool = False
    """DRADeviceTaintRules (off by default in 1.36): DeviceTaintRules are served, and evict."""
    composite_pod_groups: bool = False
    """CompositePodGroup in the API server, from 1.37 on: scheduling.k8s.io has v1alpha3 beside
    v1beta1. The emulated scheduler does not read CompositePodGroups."""
    eviction_requests: bool = False
    """KEP-4563 in the API server, from 1.37 on: lifecycle.k8s.io/v1alpha1 is served. No emulated
    controller acts on EvictionRequests."""
    recreate_stateful_sets: bool = False
    """StatefulSetRecreateStrategy (KEP-3541), from 1.37 on, in the API server and in KCM."""
    resize_preemption: bool = False
    """KEP-5836 in the API server, from 1.37 on: its metrics tell the gate. The emulated scheduler
    makes no room for resizes."""

    service_accounts: bool = False
    """Whether the admission plugin ServiceAccount is on: pods have an account, which must exist,
    and a volume with its token."""
    added_field: str = ""
    """The name of a text field that every built-in struct has besides its own, as a later release
    may add one. It is there to see whether a client loses fields that it does not know."""

    @property
    def kcm_keeps_unknown_references(self) -> bool:
        """From 1.36 on, KCM cleans lists with unknown references; before, it stops at them."""
        return self.version >= (1, 36)

    @property
    def nominates_before_binding(self) -> bool:
        """From 1.35 on, a pod with claims shows its node in status.nominatedNodeName before PreBind
        (NominatedNodeNameForExpectation)."""
        return self.version >= (1, 35)

    @property
    def binding_conditions(self) -> bool:
        """From 1.36 on, devices may have binding conditions (DRADeviceBindingConditions)."""
        return self.version >= (1, 36)

    @property
    def device_taints(self) -> bool:
        """From 1.36 on, devices may have taints (DRADeviceTaints)."""
        return self.version >= (1, 36)

    @property
    def kcm_puts_finished_pods_back(self) -> bool:
        """Up to 1.37, KCM lists a finished pod again (kubernetes/kubernetes#141274; fixed by
        #141276 in 1.38.0-alpha.2, by its changelog)."""
        return self.version < (1, 38)

    @property
    def post_filter_deallocates_groups(self) -> bool:
        """From 1.37 on, PostFilter deallocates a claim that lists only an idle PodGroup; 1.36
        leaves it allocated (kubernetes/kubernetes#140535, by its text)."""
        return self.version >= (1, 37)

    @property
    def mapped_devices(self) -> bool:
        """From 1.37 on, devices may be parts of a node's own resources, by a mapping (KEP-5517,
        alpha): the scheduler gives a claim of such a device to one pod at a time."""
        return self.version >= (1, 37)

    @property
    def binding_permission(self) -> bool:
        """From 1.36 on, writes to allocation and reservedFor need resourceclaims/binding."""
        return self.version >= (1, 36)


@dataclass(frozen=True, slots=True)
class Timings:
    """How long the components take. The defaults suit a demo of less than a minute."""

    pod_start: float = 0.05
    pod_stop: float = 0.05
    job_pod_run: float = 1.0
    """How long a pod of a Job runs, if no annotation says otherwise."""
    scheduler_cache_lag: float = 0.0
    scheduler_backoff: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0)
    kcm_cache_lag: float = 0.0
    kcm_retry: tuple[float, ...] = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
    kcm_finished_pod_loop: float = 0.05
    """Pause between the writes of KCM's loop on finished pods (real: about 4 ms)."""
    device_eviction: float = 0.2
    """Seconds for which a pod that comes to a tainted device stays there."""
    job_sync: float = 0.2
    job_backoff: float = 10.0
    garbage_collection: float = 0.05
    node_monitor_grace: float = 40.0
    pod_eviction: float | None = 5.0
    """Seconds until the pods of a lost node are deleted, and until PodGC then collects them. None:
    their tolerations decide, and PodGC collects only when the Node object is gone."""


@dataclass(frozen=True, slots=True)
class Heartbeats:
    """How kubelets show that they live. The defaults are those of real kubelets."""

    lease_seconds: int = 40
    """nodeLeaseDurationSeconds: a kubelet renews its Lease four times in it."""
    report_seconds: float = 300.0
    """nodeStatusReportFrequency: how often a kubelet reports its status, also without a change. It
    is as nodeStatusUpdateFrequency where only that is set."""


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    preset: Preset = Preset.PLAIN
    kubernetes_version: tuple[int, int] = (1, 36)
    nodes: int = 3
    devices_per_node: int = 4
    device_class: str = "gpu.example.com"
    driver: str = "gpu.example.com"
    authorization: Authorization | None = None
    """None: RBAC over TLS for a cluster that a fixture or ``python -m kube_in_process`` serves, and
    no authorization where requests come from the same process."""
    crd_folders: tuple[Path | str, ...] = ()
    """Folders of YAML and JSON files: the CustomResourceDefinitions in them are there at the start
    (CRDDirectoryPaths of envtest)."""
    conflict_storm: bool = False
    """Whether pods that share a claim conflict, as on a real scheduler (about 4 pods a second)."""
    taint_rules: bool = False
    """Whether DeviceTaintRules are served and acted on; only from 1.36 on."""
    job_pod_groups: bool = False
    """With POD_GROUPS: whether the Job controller makes a PodGroup for each Job."""
    alphas: bool = False
    """Whether the emulated alphas of 1.37 are on: CompositePodGroup (with POD_GROUPS),
    EvictionRequest, and Recreate of StatefulSets."""
    service_accounts: bool | None = None
    """Whether pods of a whole cluster have an account, which must exist, and a volume with its
    token. None: where requests are authorized. An API server without controllers does without, as
    envtest does."""
    added_field: str = ""
    """The name of a text field that every built-in struct has besides those of the release."""
    kcm_deallocates_empty_lists: bool = False
    """Whether KCM deallocates any allocated claim with an empty list. No known release does."""
    heartbeats: Heartbeats | None = None
    """Whether nodes have Leases and report their status, and how often. Off by default, because a
    virtual hour has thousands of them."""
    default_storage_class: bool = False
    """Whether there is a StorageClass ``standard``, for claims that name none. Its volumes are made
    at once. A cluster without one leaves such claims unbound, as a plain real one does."""
    history_limit: int | None = None
    """The number of revisions to keep; None keeps all."""
    seed: int = 0
    timings: Timings = field(default_factory=Timings)

    def features(self) -> Features:
        """The gates of the preset, in every component."""
        rules = self.taint_rules and self.kubernetes_version >= (1, 36)
        alphas = self.alphas and self.kubernetes_version >= (1, 37)
        base = Features(
            version=self.kubernetes_version,
            taint_rules=rules,
            eviction_requests=alphas,
            recreate_stateful_sets=alphas,
            added_field=self.added_field,
        )
        if self.preset is Preset.RESERVED_FOR_ANY_POD:
            return replace(
                base, api_reserved_for=True, scheduler_reserved_for=True, kubelet_reserved_for=True
            )
        if self.preset is Preset.POD_GROUPS:
            return replace(
                base,
                api_pod_groups=True,
                scheduler_pod_groups=True,
                kcm_pod_groups=True,
                kubelet_pod_groups=True,
                job_pod_groups=self.job_pod_groups,
                composite_pod_groups=alphas,
            )
        return base
