"""Applies manifests on the server's side, and waits until the controller runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

from claimctl.cli.errors import CommandFailed
from claimctl.commands.install.objects import Objects, check_helm, name_of
from claimctl.installation import VERSION_LABEL
from claimctl.kube.errors import ApiError, NotServed
from claimctl.wire.base import Object
from claimctl.wire.seams import Clock, Transport

CRD, DEPLOYMENT = "CustomResourceDefinition", "Deployment"
_POLL_SECONDS = 0.5
_CRD_SECONDS = 30.0
"""How long a CRD may take until the server serves it."""
_NOT_COMPARED = ("managedFields", "resourceVersion", "generation")
_ADVICE = {
    "monitoring.coreos.com": "install the Prometheus Operator first, or leave the component "
    "monitoring out",
    "admissionregistration.k8s.io": "Kubernetes 1.36 and newer serve it; leave the components "
    "sticky-claims and avoidance out",
}
"""By API group: what to do if the cluster does not serve a kind of a component."""


class ApplyOutcome(StrEnum):
    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


class Installer:
    """Applies documents one by one, in their order; ``report`` gets the name of each object (kind,
    namespace and name), and what applying it did or would do."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        report: Callable[[str, ApplyOutcome], None] = lambda *_: None,
    ) -> None:
        self._objects = Objects(transport, clock)
        self._clock = clock
        self._report = report

    async def check(self, documents: Iterable[Object]) -> None:
        """Look at what is there already.

        Raises:
            CommandFailed: an object belongs to a Helm release, claimctl is installed in another
                namespace, a CRD comes from a newer claimctl, or the server refused a read.
        """
        for document in documents:
            existing = await self._find(document)
            if existing is not None:
                check_helm(existing, "upgrade")
                _check_namespace(document, existing)
                _check_age(document, existing)

    async def apply(self, documents: Sequence[Object], *, dry_run: bool = False) -> None:
        """Apply all documents; a dry run changes nothing. CommandFailed if the server refuses an
        object, or does not serve its kind."""
        for document in documents:
            outcome = await self._apply_one(document, dry_run=dry_run)
            self._report(name_of(document), outcome)
            if document["kind"] == CRD and not dry_run:
                await self._wait_for_crd(document)

    async def wait(self, documents: Iterable[Object], seconds: float) -> None:
        """Wait until every Deployment among the documents is available. If one is not within
        ``seconds``, CommandFailed says why, if a pod does."""
        end = self._clock.monotonic() + seconds
        for document in documents:
            if document["kind"] != DEPLOYMENT:
                continue
            while not available(await self._objects.find(document) or document):
                if self._clock.monotonic() >= end:
                    raise CommandFailed(await self._late(document, seconds))
                await self._clock.sleep(_POLL_SECONDS)

    async def _find(self, document: Object) -> Object | None:
        try:
            return await self._objects.find(document)
        except ApiError as refused:
            raise CommandFailed(f"cannot read {name_of(document)}: {refused.message}") from refused

    async def _apply_one(self, document: Object, *, dry_run: bool) -> ApplyOutcome:
        before = await self._find(document)
        if before is None and dry_run:
            return ApplyOutcome.CREATED
        try:
            after = await self._objects.apply(document, dry_run=dry_run)
        except NotServed as missing:
            advice = _ADVICE.get(missing.api_version.partition("/")[0])
            raise CommandFailed(f"{missing}: {advice}" if advice else str(missing)) from missing
        except ApiError as refused:
            raise CommandFailed(f"{name_of(document)}: {refused.message}") from refused
        if before is None:
            return ApplyOutcome.CREATED
        same = _comparable(before) == _comparable(after)
        return ApplyOutcome.UNCHANGED if same else ApplyOutcome.CHANGED

    async def _wait_for_crd(self, document: Object) -> None:
        end = self._clock.monotonic() + _CRD_SECONDS
        while True:
            status = ((await self._objects.find(document)) or {}).get("status") or {}
            conditions = {(it["type"], it["status"]) for it in status.get("conditions") or ()}
            if ("Established", "True") in conditions:
                return
            if self._clock.monotonic() >= end:
                raise CommandFailed(f"{name_of(document)} is not established")
            await self._clock.sleep(_POLL_SECONDS)

    async def _late(self, document: Object, seconds: float) -> str:
        meta = document["metadata"]
        what = f"{name_of(document)} is not available within {seconds:g} s"
        pods = await self._objects.pods(meta["namespace"])
        wanted = document["spec"]["selector"]["matchLabels"].items()
        ours = (pod for pod in pods if wanted <= pod["metadata"].get("labels", {}).items())
        reasons = [reason for pod in ours if (reason := why_waiting(pod))]
        return f"{what}: {reasons[0]}" if reasons else what


def available(deployment: Object) -> bool:
    """Whether all replicas run the newest pod template, as ``kubectl rollout status`` judges."""
    status, wanted = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)

    def count(name: str) -> int:
        return int(status.get(name) or 0)

    return bool(
        count("observedGeneration") >= deployment["metadata"].get("generation", 1)
        and count("updatedReplicas") >= wanted
        and count("availableReplicas") >= wanted
        and count("replicas") <= count("updatedReplicas")
    )


def why_waiting(pod: Object) -> str:
    """Why a pod does not run, in the words of its kubelet or scheduler; '' if it does not say."""
    name, status = pod["metadata"]["name"], pod.get("status") or {}
    for container in status.get("containerStatuses") or ():
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason"):
            return f"pod {name}: {waiting['reason']}: {waiting.get('message', '')}".rstrip(": ")
    for condition in status.get("conditions") or ():
        if condition["status"] == "False" and condition.get("message"):
            return f"pod {name}: {condition['message']}"
    return ""


def version_of(text: str) -> tuple[int, ...]:
    """A version as numbers that can be compared; () for anything else."""
    parts = text.split("+")[0].split(".")
    return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else ()


def _check_namespace(document: Object, existing: Object) -> None:
    """A ClusterRoleBinding names the namespace of the controller that is installed."""
    if document["kind"] != "ClusterRoleBinding":
        return
    [wanted], others = document["subjects"], existing.get("subjects") or []
    there = {subject.get("namespace", "") for subject in others} - {wanted["namespace"]}
    if there:
        where = ", ".join(sorted(there))
        raise CommandFailed(
            f"claimctl is installed in namespace {where} already, and a cluster has one claimctl: "
            f"give --namespace {where}, or uninstall that one first"
        )


def _check_age(document: Object, existing: Object) -> None:
    """An older CRD would drop fields of stored objects that a newer claimctl needs."""
    if document["kind"] != CRD:
        return
    ours = document["metadata"].get("labels", {}).get(VERSION_LABEL, "")
    theirs = existing["metadata"].get("labels", {}).get(VERSION_LABEL, "")
    if version_of(theirs) > version_of(ours):
        raise CommandFailed(
            f"{name_of(document)} comes from claimctl {theirs}, and this is claimctl {ours}: an "
            f"older schema would drop fields; install with claimctl {theirs} or newer"
        )


def _comparable(document: Object) -> Object:
    """The object without the fields that change although nothing of it does."""
    meta = {key: value for key, value in document["metadata"].items() if key not in _NOT_COMPARED}
    return {**document, "metadata": meta, "status": None}
