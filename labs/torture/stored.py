"""Objects as a server stores them: what both torture tests ask of them, and say of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

from kube_in_process.storage.store import Revision

from claimctl.wire.base import Object

Line = tuple[float, str]
"""A time, and what happened then."""
Objects = Callable[[str], list[Object]]
"""The objects of a resource, by its plural name."""
PLURALS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "Job": "jobs"}
OWNERS = {"deployments": "ReplicaSet", "statefulsets": "StatefulSet"}
"""The kind that owns the pods; the workloads of one kind have different names."""
FOREIGN = "example.com"
"""The API group of the entries of the foreign writer."""

# Workloads and their pods


def missing_pods(objects: Objects) -> list[str]:
    """Workloads whose pods do not all run."""
    missing, pods = [], objects("pods")
    for plural, owner in OWNERS.items():
        for workload in objects(plural):
            meta, wanted = workload["metadata"], workload["spec"].get("replicas", 1)
            running = sum(_runs(pod, owner, meta["name"]) for pod in pods)
            if running < wanted and not is_deleting(workload):
                missing.append(f"{plural}/{meta['name']}: {running} of {wanted} pods run")
    for job in objects("jobs"):
        stays = not job["spec"].get("suspend") and not is_deleting(job)
        if stays and not has_ended(job):
            missing.append(f"jobs/{job['metadata']['name']}: not ended")
    return missing


def _runs(pod: Object, owner: str, workload: str) -> bool:
    meta = pod["metadata"]
    owned = any(reference["kind"] == owner for reference in meta.get("ownerReferences") or ())
    of_this = (meta.get("labels") or {}).get("app") == workload
    running = (pod.get("status") or {}).get("phase") == "Running"
    return owned and of_this and running and not is_deleting(pod)


def has_ended(job: Object) -> bool:
    return any(condition(job, kind).get("status") == "True" for kind in ("Complete", "Failed"))


def condition(obj: Object, kind: str) -> Object:
    """The condition of a kind; empty if there is none."""
    known = (obj.get("status") or {}).get("conditions") or ()
    return next((each for each in known if each["type"] == kind), {})


def is_allocated(claim: Object) -> bool:
    return bool((claim.get("status") or {}).get("allocation"))


def is_deleting(obj: Object) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def named_claims(pod: Object) -> list[str]:
    """The claims that the pod names itself. The cluster makes those of templates anew."""
    entries = pod["spec"].get("resourceClaims") or ()
    return [entry["resourceClaimName"] for entry in entries if entry.get("resourceClaimName")]


def is_in_the_way(pod: Object, claims: Mapping[str, Object]) -> bool:
    """Whether a pod can never run, so that its users delete it.

    It is an orphan, or its claim is deleted, or another writer deallocated the claim. claimctl
    reports that only deleting such pods helps.
    """
    own = [claims[name] for name in named_claims(pod)]
    deleted, freed = any(map(is_deleting, own)), not all(map(is_allocated, own))
    orphan = not pod["metadata"].get("ownerReferences")
    return orphan or deleted or bool(pod["spec"].get("nodeName") and freed)


# Holds


def is_held(revision: Revision, *groups: str) -> bool:
    """Whether the revision is a claim whose list has more than pods: claimctl maintains it.

    Args:
        groups: the API groups of the entries that count; none for all.
    """
    if revision.plural != "resourceclaims":
        return False
    listed = (revision.object().get("status") or {}).get("reservedFor") or ()
    api_groups = {entry.get("apiGroup", "") for entry in listed} - {""}
    return bool(api_groups & {*groups} if groups else api_groups)


def made_beside_a_hold(written: Sequence[Revision]) -> int:
    """How many pods were made, if a workload holds a claim in the later half of the revisions.

    Without a hold, luck decides when the list is empty for a moment.
    """
    held = any(is_held(revision, "apps", "batch") for revision in written[len(written) // 2 :])
    made = sum((revision.plural, revision.type) == ("pods", "ADDED") for revision in written)
    return made if held else 0


# The foreign writer


def meddled(listed: Iterable[Object], rng: Random) -> tuple[str, list[Object]]:
    """What a foreign writer does to a list, and the list afterwards."""
    how, changed = rng.choice(["add", "remove", "reorder"]), list(listed)
    if how == "add":
        number = rng.randrange(10**9)
        thing = {"resource": "things", "name": f"thing-{number}", "uid": f"foreign-{number}"}
        changed.append({"apiGroup": FOREIGN, **thing})
    elif how == "remove" and len(changed) > 1:
        changed.pop(rng.randrange(len(changed)))
    else:
        rng.shuffle(changed)
    return how, changed


def without_foreign(claim: Object, objects: Objects) -> Object | None:
    """The status of a claim without the entries of the foreign writer; None if it has none.

    A writer that removes the last entry of a claim without a ClaimReservation must deallocate it.
    """
    status: dict[str, Any] = dict(claim.get("status") or {})
    listed = status.pop("reservedFor", None) or []
    kept = [entry for entry in listed if entry.get("apiGroup") != FOREIGN]
    if len(kept) == len(listed):
        return None
    if kept:
        status["reservedFor"] = kept
    elif claim["metadata"]["name"] not in reserved(objects):
        status.pop("allocation", None)
    return status


def reserved(objects: Objects) -> set[str]:
    """The names of the claims that ClaimReservations are for."""
    return {made["spec"]["resourceClaimName"] for made in objects("claimreservations")}


# For people


def log_lines(history: Iterable[Revision], *notes: Iterable[Line]) -> Iterator[str]:
    """Actions, faults and revisions in the order of time."""
    lines = [(revision.at, line_of(revision)) for revision in history if _tells(revision)]
    lines += [(at, f"{'':7} *** {text}") for note in notes for at, text in note]
    began = min((at for at, _ in lines), default=0.0)
    for at, text in sorted(lines, key=lambda line: line[0]):
        yield f"t={at - began:8.3f} {text}"


def _tells(revision: Revision) -> bool:
    return revision.plural not in ("events", "leases")


def line_of(revision: Revision) -> str:
    """One revision for people."""
    actor = revision.actor.rpartition(":")[2]
    what = f"{revision.verb}{'/' + revision.subresource if revision.subresource else ''}"
    told = summary(revision.plural, revision.name, revision.object())
    return f"{revision.number:7} {actor:24} {revision.type:8} {what:14} {told}"


def summary(plural: str, name: str, obj: Object) -> str:
    """The object in one line."""
    text, status = f"{plural}/{name}", obj.get("status") or {}
    if is_deleting(obj):
        text += " DELETING"
    tell = _TELLERS.get(plural)
    return text if tell is None else f"{text} {tell(obj, status)}"


def _of_claim(claim: Object, status: Object) -> str:
    listed = [f"{entry['resource']}/{entry['name']}" for entry in status.get("reservedFor") or ()]
    finalizers = claim["metadata"].get("finalizers") or []
    return f"allocated={is_allocated(claim)} reservedFor={listed} {finalizers=}"


def _of_pod(pod: Object, status: Object) -> str:
    reasons = [condition.get("reason") for condition in status.get("conditions") or ()]
    said = "".join(f" [{reason}]" for reason in reasons if reason)
    return f"{status.get('phase')} on {pod['spec'].get('nodeName', '-')}{said}"


def _of_reservation(_: Object, status: Object) -> str:
    conditions = status.get("conditions") or ()
    reasons = {condition["type"]: condition["reason"] for condition in conditions}
    ghosts = [ghost.get("name") for ghost in status.get("forceDeletedPods") or ()]
    return f"{reasons} release={status.get('release')} {ghosts=}"


def _of_replicas(workload: Object, _: Object) -> str:
    return f"replicas={workload['spec'].get('replicas')}"


def _of_job(job: Object, status: Object) -> str:
    return f"suspend={job['spec'].get('suspend')} active={status.get('active', 0)}"


_TELLERS: Mapping[str, Callable[[Object, Object], str]] = {
    "resourceclaims": _of_claim,
    "pods": _of_pod,
    "claimreservations": _of_reservation,
    **dict.fromkeys(("deployments", "statefulsets", "replicasets"), _of_replicas),
    "jobs": _of_job,
}
