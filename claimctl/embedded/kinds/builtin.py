"""The built-in kinds, as the discovery documents of v1.36 list them."""

from __future__ import annotations

from dataclasses import replace

from claimctl.embedded.kinds.kind import Kind, Kinds
from claimctl.embedded.options import Features

_STATUS = ("status",)
_SCALED = ("scale", "status")
_ALL = ("all",)
_CREATE = ("create",)
_EXTENSIONS = ("api-extensions",)

_CORE = (
    Kind("", ("v1",), "bindings", "binding", "Binding", verbs=_CREATE),
    Kind(
        "",
        ("v1",),
        "componentstatuses",
        "componentstatus",
        "ComponentStatus",
        namespaced=False,
        short_names=("cs",),
        verbs=("get", "list"),
    ),
    Kind("", ("v1",), "configmaps", "configmap", "ConfigMap", short_names=("cm",)),
    Kind("", ("v1",), "endpoints", "endpoints", "Endpoints", short_names=("ep",)),
    Kind("", ("v1",), "events", "event", "Event", short_names=("ev",), create_on_update=True),
    Kind("", ("v1",), "limitranges", "limitrange", "LimitRange", short_names=("limits",)),
    Kind(
        "",
        ("v1",),
        "namespaces",
        "namespace",
        "Namespace",
        namespaced=False,
        short_names=("ns",),
        subresources=("finalize", "status"),
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
        deletes_to="object",
    ),
    Kind(
        "",
        ("v1",),
        "nodes",
        "node",
        "Node",
        namespaced=False,
        short_names=("no",),
        subresources=("proxy", "status"),
    ),
    Kind(
        "",
        ("v1",),
        "persistentvolumeclaims",
        "persistentvolumeclaim",
        "PersistentVolumeClaim",
        short_names=("pvc",),
        subresources=_STATUS,
        deletes_to="object",
    ),
    Kind(
        "",
        ("v1",),
        "persistentvolumes",
        "persistentvolume",
        "PersistentVolume",
        namespaced=False,
        short_names=("pv",),
        subresources=_STATUS,
        deletes_to="object",
    ),
    Kind(
        "",
        ("v1",),
        "pods",
        "pod",
        "Pod",
        short_names=("po",),
        categories=_ALL,
        subresources=(
            "attach",
            "binding",
            "ephemeralcontainers",
            "eviction",
            "exec",
            "log",
            "portforward",
            "proxy",
            "resize",
            "status",
        ),
        generation=True,
        deletes_to="object",
    ),
    Kind("", ("v1",), "podtemplates", "podtemplate", "PodTemplate", deletes_to="object"),
    Kind(
        "",
        ("v1",),
        "replicationcontrollers",
        "replicationcontroller",
        "ReplicationController",
        short_names=("rc",),
        categories=_ALL,
        subresources=_SCALED,
        generation=True,
    ),
    Kind(
        "",
        ("v1",),
        "resourcequotas",
        "resourcequota",
        "ResourceQuota",
        short_names=("quota",),
        subresources=_STATUS,
        deletes_to="object",
    ),
    Kind("", ("v1",), "secrets", "secret", "Secret"),
    Kind(
        "",
        ("v1",),
        "serviceaccounts",
        "serviceaccount",
        "ServiceAccount",
        short_names=("sa",),
        subresources=("token",),
        deletes_to="object",
    ),
    Kind(
        "",
        ("v1",),
        "services",
        "service",
        "Service",
        short_names=("svc",),
        categories=_ALL,
        subresources=("proxy", "status"),
        deletes_to="object",
    ),
)

_APISERVICES = (
    Kind(
        "apiregistration.k8s.io",
        ("v1",),
        "apiservices",
        "apiservice",
        "APIService",
        namespaced=False,
        categories=_EXTENSIONS,
        subresources=_STATUS,
        unconditional_update=False,
    ),
)


def _apps(plural: str, kind: str, short: tuple[str, ...], sub: tuple[str, ...]) -> Kind:
    return Kind(
        "apps",
        ("v1",),
        plural,
        plural.removesuffix("s"),
        kind,
        short_names=short,
        categories=_ALL,
        subresources=sub,
        generation=True,
    )


_APPS = (
    Kind("apps", ("v1",), "controllerrevisions", "controllerrevision", "ControllerRevision"),
    _apps("daemonsets", "DaemonSet", ("ds",), _STATUS),
    _apps("deployments", "Deployment", ("deploy",), _SCALED),
    _apps("replicasets", "ReplicaSet", ("rs",), _SCALED),
    _apps("statefulsets", "StatefulSet", ("sts",), _SCALED),
)

_EVENTS = (
    Kind(
        "events.k8s.io",
        ("v1",),
        "events",
        "event",
        "Event",
        short_names=("ev",),
        create_on_update=True,
        stored_in=("", "events"),
    ),
)


def _review(group: str, plural: str, kind: str, namespaced: bool = False) -> Kind:
    singular = plural.removesuffix("s")
    return Kind(group, ("v1",), plural, singular, kind, namespaced=namespaced, verbs=_CREATE)


_AUTHENTICATION = "authentication.k8s.io"
_AUTHORIZATION = "authorization.k8s.io"
_REVIEWS = (
    _review(_AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview"),
    _review(_AUTHENTICATION, "tokenreviews", "TokenReview"),
    _review(_AUTHORIZATION, "localsubjectaccessreviews", "LocalSubjectAccessReview", True),
    _review(_AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    _review(_AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    _review(_AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview"),
)

_AUTOSCALING = (
    Kind(
        "autoscaling",
        ("v2", "v1"),
        "horizontalpodautoscalers",
        "horizontalpodautoscaler",
        "HorizontalPodAutoscaler",
        short_names=("hpa",),
        categories=_ALL,
        subresources=_STATUS,
    ),
)

_BATCH = (
    Kind(
        "batch",
        ("v1",),
        "cronjobs",
        "cronjob",
        "CronJob",
        short_names=("cj",),
        categories=_ALL,
        subresources=_STATUS,
        generation=True,
    ),
    Kind(
        "batch",
        ("v1",),
        "jobs",
        "job",
        "Job",
        categories=_ALL,
        subresources=_STATUS,
        generation=True,
    ),
)


def _cluster(group: str, plural: str, kind: str, **more: tuple[str, ...]) -> Kind:
    singular = plural.removesuffix("es") if plural.endswith("sses") else plural.removesuffix("s")
    if plural.endswith("policies"):
        singular = plural.removesuffix("ies") + "y"
    return Kind(
        group,
        ("v1",),
        plural,
        singular,
        kind,
        namespaced=False,
        short_names=more.get("short", ()),
        categories=more.get("categories", ()),
        subresources=more.get("sub", ()),
        generation=group in _WITH_GENERATION,
    )


_ADMISSION = "admissionregistration.k8s.io"
_FLOW = "flowcontrol.apiserver.k8s.io"
_STORAGE = "storage.k8s.io"
_NETWORKING = "networking.k8s.io"
_WITH_GENERATION = (_ADMISSION, _FLOW)

_CERTIFICATES = (
    _cluster(
        "certificates.k8s.io",
        "certificatesigningrequests",
        "CertificateSigningRequest",
        short=("csr",),
        sub=("approval", "status"),
    ),
)

_NETWORK = (
    _cluster(_NETWORKING, "ingressclasses", "IngressClass"),
    Kind(
        _NETWORKING,
        ("v1",),
        "ingresses",
        "ingress",
        "Ingress",
        short_names=("ing",),
        subresources=_STATUS,
        generation=True,
    ),
    Kind(
        _NETWORKING,
        ("v1",),
        "ipaddresses",
        "ipaddress",
        "IPAddress",
        namespaced=False,
        short_names=("ip",),
    ),
    Kind(
        _NETWORKING,
        ("v1",),
        "networkpolicies",
        "networkpolicy",
        "NetworkPolicy",
        short_names=("netpol",),
        generation=True,
    ),
    _cluster(_NETWORKING, "servicecidrs", "ServiceCIDR", sub=_STATUS),
)

_POLICY = (
    Kind(
        "policy",
        ("v1",),
        "poddisruptionbudgets",
        "poddisruptionbudget",
        "PodDisruptionBudget",
        short_names=("pdb",),
        subresources=_STATUS,
        generation=True,
        unconditional_update=False,
    ),
)


def _rbac(plural: str, kind: str, *, namespaced: bool) -> Kind:
    return Kind(
        "rbac.authorization.k8s.io",
        ("v1",),
        plural,
        plural.removesuffix("s"),
        kind,
        namespaced=namespaced,
        create_on_update=True,
    )


_RBAC = (
    _rbac("clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    _rbac("clusterroles", "ClusterRole", namespaced=False),
    _rbac("rolebindings", "RoleBinding", namespaced=True),
    _rbac("roles", "Role", namespaced=True),
)

_VOLUMES = (
    _cluster(_STORAGE, "csidrivers", "CSIDriver"),
    _cluster(_STORAGE, "csinodes", "CSINode"),
    Kind(_STORAGE, ("v1",), "csistoragecapacities", "csistoragecapacity", "CSIStorageCapacity"),
    _cluster(_STORAGE, "storageclasses", "StorageClass", short=("sc",)),
    _cluster(_STORAGE, "volumeattachments", "VolumeAttachment", sub=_STATUS),
    _cluster(_STORAGE, "volumeattributesclasses", "VolumeAttributesClass", short=("vac",)),
)

_WEBHOOKS = tuple(
    _cluster(_ADMISSION, plural, kind, categories=_EXTENSIONS, sub=sub)
    for plural, kind, sub in (
        ("mutatingadmissionpolicies", "MutatingAdmissionPolicy", ()),
        ("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", ()),
        ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", ()),
        ("validatingadmissionpolicies", "ValidatingAdmissionPolicy", _STATUS),
        ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", ()),
        ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", ()),
    )
)

_CRDS = (
    Kind(
        "apiextensions.k8s.io",
        ("v1",),
        "customresourcedefinitions",
        "customresourcedefinition",
        "CustomResourceDefinition",
        namespaced=False,
        short_names=("crd", "crds"),
        categories=_EXTENSIONS,
        subresources=_STATUS,
        generation=True,
        unconditional_update=False,
    ),
)

_PRIORITIES = (
    Kind(
        "scheduling.k8s.io",
        ("v1",),
        "priorityclasses",
        "priorityclass",
        "PriorityClass",
        namespaced=False,
        short_names=("pc",),
        generation=True,
    ),
)


def _pod_groups(version: str) -> tuple[Kind, ...]:
    group = "scheduling.k8s.io"
    return (
        Kind(
            group,
            (version,),
            "podgroups",
            "podgroup",
            "PodGroup",
            subresources=_STATUS,
        ),
        Kind(group, (version,), "workloads", "workload", "Workload"),
    )


_LEASES = (
    Kind(
        "coordination.k8s.io",
        ("v1",),
        "leases",
        "lease",
        "Lease",
        unconditional_update=False,
        create_on_update=True,
    ),
)

_RUNTIME = (
    _cluster("node.k8s.io", "runtimeclasses", "RuntimeClass"),
    Kind("discovery.k8s.io", ("v1",), "endpointslices", "endpointslice", "EndpointSlice"),
)


def _dra_versions(release: tuple[int, int]) -> tuple[str, ...]:
    """What DRA is served as by default: v1 from 1.34 on, before that the betas (switched on)."""
    if release >= (1, 34):
        return ("v1",)
    return ("v1beta2", "v1beta1") if release >= (1, 33) else ("v1beta1",)


def _dra(plural: str, kind: str, namespaced: bool, generation: bool, sub: tuple[str, ...]) -> Kind:
    singular = plural.removesuffix("es") if plural == "deviceclasses" else plural.removesuffix("s")
    return Kind(
        "resource.k8s.io",
        ("v1",),
        plural,
        singular,
        kind,
        namespaced=namespaced,
        subresources=sub,
        generation=generation,
        deletes_to="object",
        stored_as="v1",
    )


_DRA = (
    _dra("deviceclasses", "DeviceClass", False, True, ()),
    _dra("resourceclaims", "ResourceClaim", True, False, _STATUS),
    _dra("resourceclaimtemplates", "ResourceClaimTemplate", True, False, ()),
    _dra("resourceslices", "ResourceSlice", False, True, ()),
)

_FLOWS = (
    _cluster(_FLOW, "flowschemas", "FlowSchema", sub=_STATUS),
    _cluster(_FLOW, "prioritylevelconfigurations", "PriorityLevelConfiguration", sub=_STATUS),
)


def builtin_kinds(features: Features) -> Kinds:
    """The kinds of a server with those gates, in the order of its discovery documents."""
    groups: tuple[Kind, ...] = ()
    if features.api_pod_groups:
        groups = _pod_groups("v1beta1" if features.version >= (1, 37) else "v1alpha2")
    first = (*_CORE, *_APISERVICES, *_APPS, *_EVENTS, *_REVIEWS, *_AUTOSCALING, *_BATCH)
    second = (*_CERTIFICATES, *_NETWORK, *_POLICY, *_RBAC, *_VOLUMES, *_WEBHOOKS, *_CRDS)
    dra = tuple(replace(kind, versions=_dra_versions(features.version)) for kind in _DRA)
    return Kinds((*first, *second, *_PRIORITIES, *groups, *_LEASES, *_RUNTIME, *dra, *_FLOWS))
