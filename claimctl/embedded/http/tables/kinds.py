"""The columns of built-in kinds, by group and plural."""

from __future__ import annotations

from claimctl.embedded.http.tables.columns import (
    AGE,
    NAME,
    NONE,
    Column,
    Row,
    containers,
    field,
    human,
    joined,
    name_of,
    number,
    parse_time,
    selector,
    selector_of,
    since,
    wide,
)
from claimctl.embedded.http.tables.pods import CLAIMS, PODS

_TEMPLATE = ("spec", "template", "spec", "containers")
_SELECTOR = wide("Selector", selector, ".spec.selector")
_DEPLOYMENT_SELECTOR = wide(
    "Selector",
    selector,
    "Label selector for pods. Existing ReplicaSets whose pods are selected by this will be the "
    "ones affected by this deployment. It must match the pod template's labels.",
)


def _of(part: tuple[str, ...], whole: tuple[str, ...]) -> Column:
    return Column(
        "Ready",
        lambda row: f"{row.number(*part)}/{row.number(*whole)}",
        "Number of the pod with ready state",
    )


_DEPLOYMENTS = [
    NAME,
    _of(("status", "readyReplicas"), ("spec", "replicas")),
    Column("Up-to-date", number("status", "updatedReplicas"), ".status.updatedReplicas"),
    Column("Available", number("status", "availableReplicas"), ".status.availableReplicas"),
    AGE,
    *containers(*_TEMPLATE),
    _DEPLOYMENT_SELECTOR,
]
_REPLICA_SETS = [
    NAME,
    Column("Desired", number("spec", "replicas"), ".spec.replicas", type="integer"),
    Column("Current", number("status", "replicas"), ".status.replicas", type="integer"),
    Column("Ready", number("status", "readyReplicas"), ".status.readyReplicas", type="integer"),
    AGE,
    *containers(*_TEMPLATE),
    _SELECTOR,
]
_STATEFUL_SETS = [
    NAME,
    _of(("status", "readyReplicas"), ("spec", "replicas")),
    AGE,
    *containers(*_TEMPLATE),
]


def _job_status(row: Row) -> str:
    true = {c["type"] for c in row.get("status", "conditions") or () if c.get("status") == "True"}
    for condition, shown in (
        ("Complete", "Complete"),
        ("Failed", "Failed"),
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ):
        if condition in true:
            return shown
    return "Terminating" if row.get("metadata", "deletionTimestamp") else "Running"


def _completions(row: Row) -> str:
    wanted = row.get("spec", "completions")
    if wanted is None:
        parallelism = row.number("spec", "parallelism")
        wanted = f"1 of {parallelism}" if parallelism > 1 else 1
    return f"{row.number('status', 'succeeded')}/{wanted}"


def _duration(row: Row) -> str:
    start, end = row.get("status", "startTime"), row.get("status", "completionTime")
    if not start:
        return ""
    if not end:
        return since(start, row.now)
    return human(int((parse_time(end) - parse_time(start)).total_seconds()))


_JOBS = [
    NAME,
    Column("Status", _job_status, "Status of the job."),
    Column("Completions", _completions, ".status.succeeded"),
    Column("Duration", _duration, "Time required to complete the job."),
    AGE,
    *containers(*_TEMPLATE),
    _SELECTOR,
]


def _node_status(row: Row) -> str:
    conditions = {c["type"]: c["status"] for c in row.get("status", "conditions") or ()}
    ready = {"True": "Ready", None: "Unknown"}.get(conditions.get("Ready"), "NotReady")
    return f"{ready},SchedulingDisabled" if row.get("spec", "unschedulable") else ready


def _roles(row: Row) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = row.get("metadata", "labels") or {}
    return joined(key.removeprefix(prefix) for key in sorted(labels) if key.startswith(prefix))


def _address(kind: str) -> Column:
    def cell(row: Row) -> str:
        found = (a["address"] for a in row.get("status", "addresses") or () if a["type"] == kind)
        return next(found, NONE)

    return wide(kind.replace("IP", "-IP"), cell, ".status.addresses")


def _node_info(title: str, key: str) -> Column:
    cell = field("status", "nodeInfo", key, default="<unknown>")
    return wide(title, cell, f".status.nodeInfo.{key}")


_NODES = [
    NAME,
    Column("Status", _node_status, "The status of the node"),
    Column("Roles", _roles, "The roles of the node"),
    AGE,
    Column(
        "Version",
        field("status", "nodeInfo", "kubeletVersion", default=""),
        ".status.nodeInfo.kubeletVersion",
    ),
    _address("InternalIP"),
    _address("ExternalIP"),
    _node_info("OS-Image", "osImage"),
    _node_info("Kernel-Version", "kernelVersion"),
    _node_info("Container-Runtime", "containerRuntimeVersion"),
]


def _last_seen(row: Row) -> str:
    series = row.get("series", "lastObservedTime")
    times = (series, row.get("lastTimestamp"), row.get("eventTime"), row.get("firstTimestamp"))
    return since(next((time for time in times if time), None), row.now)


def _regarding(row: Row) -> str:
    found = row.get("involvedObject") or row.get("regarding") or {}
    return f"{found.get('kind', '').lower()}/{found.get('name', '')}"


def _part(row: Row) -> str:
    return str((row.get("involvedObject") or row.get("regarding") or {}).get("fieldPath", ""))


def _source(row: Row) -> str:
    found = row.get("source") or row.get("deprecatedSource") or {}
    component = found.get("component") or row.get("reportingComponent")
    parts = (component or row.get("reportingController") or "", found.get("host", ""))
    return ", ".join(part for part in parts if part)


def _first_seen(row: Row) -> str:
    first = row.get("firstTimestamp") or row.get("deprecatedFirstTimestamp")
    return since(first or row.get("eventTime"), row.now)


_EVENTS = [
    Column("Last Seen", _last_seen, ".lastTimestamp"),
    Column("Type", field("type"), ".type"),
    Column("Reason", field("reason"), ".reason"),
    Column("Object", _regarding, ".involvedObject"),
    wide("Subobject", _part, ".involvedObject.fieldPath"),
    wide("Source", _source, ".source"),
    Column(
        "Message", lambda row: row.text("message", default=row.text("note")).strip(), ".message"
    ),
    wide("First Seen", _first_seen, ".firstTimestamp"),
    wide("Count", lambda row: str(max(row.number("count"), 1)), ".count"),
    Column("Name", name_of, ".metadata.name", priority=1, format="name"),
]


def _entries(*fields: str) -> Column:
    return Column("Data", lambda row: sum(len(row.get(f) or ()) for f in fields), ".data")


def _ports(row: Row) -> str:
    ports = row.get("spec", "ports") or ()
    return joined(f"{port['port']}/{port.get('protocol', 'TCP')}" for port in ports)


_SERVICES = [
    NAME,
    Column("Type", field("spec", "type", default="ClusterIP"), ".spec.type"),
    Column("Cluster-IP", field("spec", "clusterIP"), ".spec.clusterIP"),
    Column("External-IP", lambda row: joined(row.get("spec", "externalIPs") or ()), ""),
    Column("Port(s)", _ports, ".spec.ports"),
    AGE,
    _SELECTOR,
]
_BUDGETS = [
    NAME,
    Column("Min Available", field("spec", "minAvailable", default="N/A"), ".spec.minAvailable"),
    Column(
        "Max Unavailable", field("spec", "maxUnavailable", default="N/A"), ".spec.maxUnavailable"
    ),
    Column(
        "Allowed Disruptions",
        number("status", "disruptionsAllowed"),
        ".status.disruptionsAllowed",
        type="integer",
    ),
    AGE,
]


def _policy(row: Row) -> str:
    policy = row.get("spec", "schedulingPolicy") or {}
    return "Gang" if "gang" in policy else "Basic"


def _group_status(row: Row) -> str:
    for condition in row.get("status", "conditions") or ():
        if condition["type"] == "PodGroupScheduled":
            return "Scheduled" if condition["status"] == "True" else str(condition["reason"])
    return "Pending"


_POD_GROUPS = [
    NAME,
    Column(
        "Policy",
        _policy,
        "SchedulingPolicy defines the scheduling policy for this instance of the PodGroup. "
        "Controllers are expected to fill this field by copying it from a PodGroupTemplate. This "
        "field is immutable.",
    ),
    Column(
        "Workload",
        field("spec", "podGroupTemplateRef", "workload", "workloadName"),
        "Name of the referenced Workload object",
    ),
    Column("Status", _group_status, "Status of the PodGroup"),
    AGE,
]
_CREATED = Column(
    "Created At", field("metadata", "creationTimestamp"), ".metadata.creationTimestamp", type="date"
)
_PLAIN = [NAME, AGE]
DEFAULT = [NAME, _CREATED]
"""Of kinds without columns of their own."""


def _role(row: Row) -> str:
    return f"{row.text('roleRef', 'kind')}/{row.text('roleRef', 'name')}"


def _subjects(title: str, kind: str, what: str) -> Column:
    def cell(row: Row) -> str:
        found = [each for each in row.get("subjects") or () if each.get("kind") == kind]
        spaces = [f"{each['namespace']}/" if each.get("namespace") else "" for each in found]
        names = (f"{space}{each['name']}" for space, each in zip(spaces, found, strict=True))
        return ", ".join(names)

    return wide(title, cell, f"{title} in the {what}")


def _bindings(what: str) -> list[Column]:
    return [
        NAME,
        Column("Role", _role, ".roleRef"),
        AGE,
        _subjects("Users", "User", what),
        _subjects("Groups", "Group", what),
        _subjects("ServiceAccounts", "ServiceAccount", what),
    ]


def _count(name: str, key: str) -> Column:
    return Column(name, number("status", key), f".status.{key}", type="integer")


def _node_selector(row: Row) -> str:
    return selector_of(row.get("spec", "template", "spec", "nodeSelector"))


_DAEMON_SETS = [
    NAME,
    _count("Desired", "desiredNumberScheduled"),
    _count("Current", "currentNumberScheduled"),
    _count("Ready", "numberReady"),
    _count("Up-to-date", "updatedNumberScheduled"),
    _count("Available", "numberAvailable"),
    Column("Node Selector", _node_selector, ".spec.template.spec.nodeSelector"),
    AGE,
    *containers(*_TEMPLATE),
    _SELECTOR,
]


def _last_scheduled(row: Row) -> str:
    last = row.get("status", "lastScheduleTime")
    return since(last, row.now) if last else NONE


def _job_selector(row: Row) -> str:
    return selector_of(row.get("spec", "jobTemplate", "spec", "selector"))


_JOB = ("spec", "jobTemplate", "spec")
_CRON_JOBS = [
    NAME,
    Column("Schedule", field("spec", "schedule"), ".spec.schedule"),
    Column("Timezone", field("spec", "timeZone"), ".spec.timeZone"),
    Column(
        "Suspend",
        lambda row: str(bool(row.get("spec", "suspend"))),
        ".spec.suspend",
        type="boolean",
    ),
    Column(
        "Active",
        lambda row: len(row.get("status", "active") or ()),
        ".status.active",
        type="integer",
    ),
    Column("Last Schedule", _last_scheduled, ".status.lastScheduleTime"),
    AGE,
    *containers(*_JOB, "template", "spec", "containers"),
    wide("Selector", _job_selector, ".spec.jobTemplate.spec.selector"),
]


def _controller(row: Row) -> str:
    for owner in row.get("metadata", "ownerReferences") or ():
        if owner.get("controller"):
            group = owner["apiVersion"].rpartition("/")[0]
            kind = owner["kind"].lower()
            return f"{kind}.{group}/{owner['name']}" if group else f"{kind}/{owner['name']}"
    return NONE


_REVISIONS = [
    NAME,
    Column("Controller", _controller, "Controller of the object"),
    Column("Revision", number("revision"), ".revision"),
    AGE,
]
_PRIORITIES = [
    NAME,
    Column("Value", number("value"), ".value", type="integer"),
    Column(
        "Global-Default",
        lambda row: bool(row.get("globalDefault")),
        ".globalDefault",
        type="boolean",
    ),
    AGE,
    Column("PreemptionPolicy", field("preemptionPolicy"), ".preemptionPolicy"),
]

_SECRETS = Column("Secrets", lambda row: len(row.get("secrets") or ()), ".secrets")
SINCE: dict[tuple[str, str], tuple[tuple[int, int], list[Column]]] = {
    ("", "serviceaccounts"): ((1, 36), [NAME, AGE]),
}
"""The columns of a kind from a version on, where they changed."""

COLUMNS: dict[tuple[str, str], list[Column]] = {
    ("", "pods"): PODS,
    ("", "nodes"): _NODES,
    ("", "namespaces"): [
        NAME,
        Column("Status", field("status", "phase"), "The status of the namespace"),
        AGE,
    ],
    ("", "events"): _EVENTS,
    ("events.k8s.io", "events"): _EVENTS,
    ("", "configmaps"): [NAME, _entries("data", "binaryData"), AGE],
    ("", "secrets"): [NAME, Column("Type", field("type"), ".type"), _entries("data"), AGE],
    ("", "serviceaccounts"): [NAME, _SECRETS, AGE],
    ("", "services"): _SERVICES,
    ("apps", "deployments"): _DEPLOYMENTS,
    ("apps", "replicasets"): _REPLICA_SETS,
    ("apps", "statefulsets"): _STATEFUL_SETS,
    ("apps", "daemonsets"): _DAEMON_SETS,
    ("apps", "controllerrevisions"): _REVISIONS,
    ("batch", "jobs"): _JOBS,
    ("batch", "cronjobs"): _CRON_JOBS,
    ("scheduling.k8s.io", "priorityclasses"): _PRIORITIES,
    ("policy", "poddisruptionbudgets"): _BUDGETS,
    ("coordination.k8s.io", "leases"): [
        NAME,
        Column("Holder", field("spec", "holderIdentity", default=""), ".spec.holderIdentity"),
        AGE,
    ],
    ("resource.k8s.io", "resourceclaims"): CLAIMS,
    ("resource.k8s.io", "resourceclaimtemplates"): _PLAIN,
    ("resource.k8s.io", "deviceclasses"): _PLAIN,
    ("resource.k8s.io", "resourceslices"): [
        NAME,
        Column("Node", field("spec", "nodeName"), ".spec.nodeName"),
        Column("Driver", field("spec", "driver"), ".spec.driver"),
        Column("Pool", field("spec", "pool", "name"), ".spec.pool.name"),
        AGE,
    ],
    ("scheduling.k8s.io", "podgroups"): _POD_GROUPS,
    ("scheduling.k8s.io", "workloads"): _PLAIN,
    ("rbac.authorization.k8s.io", "rolebindings"): _bindings("roleBinding"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"): _bindings("clusterRoleBinding"),
}
