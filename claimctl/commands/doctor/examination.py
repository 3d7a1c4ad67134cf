"""Read a cluster for ``claimctl doctor``, and go on past what the user may not read.

``_observe`` lists what the checks need, and notes by ``_Reader`` which of them are not possible. A
new check names in ``_wanted`` the resource that it needs. What it needs besides is a field of
``ObservedCluster``, filled in ``_observe``. What may be a short delay is looked at again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from msgspec import structs

from claimctl.cli.extensions import extensions
from claimctl.cli.kinds import KindReader
from claimctl.commands.claims.device_classes import CLAIMS_WITH_REQUESTS, PUBLISHED_DEVICES
from claimctl.commands.claims.explanation import PAUSES
from claimctl.commands.claims.places import Places, places_of
from claimctl.commands.doctor.account import ControllerAccount, Installation, read_installation
from claimctl.commands.doctor.claim_matters import matters_of
from claimctl.commands.doctor.dangling import in_doubt, still_listed, uids
from claimctl.commands.doctor.missing_claims import missing_claims
from claimctl.commands.doctor.model import (
    NOT_INSTALLED,
    OUTSIDE,
    STICKY_CHECK,
    Finding,
    ObservedCluster,
)
from claimctl.commands.doctor.rights import kind_problems, lacking_rights
from claimctl.commands.doctor.sticky_check import asks, sticky_problems
from claimctl.commands.doctor.versions import read_crds_release
from claimctl.commands.orphans.judge import judge
from claimctl.commands.orphans.model import Orphan, ScannedClaim
from claimctl.commands.orphans.scan import ClaimScan, scan_claims
from claimctl.controller.dialect import Detection, DialectProbe, DialectUnknown
from claimctl.downgrade.crossing import OLD
from claimctl.installation import INSTALLED
from claimctl.kube.client import Client
from claimctl.kube.codec import Listing
from claimctl.kube.discovery import Discovery
from claimctl.kube.errors import Forbidden
from claimctl.live_objects import list_if_served
from claimctl.parallel import side_by_side
from claimctl.reservation import sticky
from claimctl.reservation.annotation import Annotated, misspelled, plan
from claimctl.reservation.facts.dialects import recorded_dialect
from claimctl.reservation.facts.pods import Consumers, is_bound
from claimctl.wire import resources as wire
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.reservations import RESERVE_ANNOTATION, ClaimReservation, WorkloadRef
from claimctl.wire.resources import WORKLOADS, Resource
from claimctl.wire.seams import Clock
from claimctl.wire.traces import RECORDS
from claimctl.wire.unreadable import Unreadable

T = TypeVar("T")

_OF_CLAIMS = (
    "orphans",
    "listed-ahead",
    "near-limit",
    "dangling-references",
    "unreadable-objects",
    "held-devices",
    "waiting-pods",
)
"""The checks that need the scan of claims."""
_CRDS = (wire.CLAIMRESERVATIONS, wire.DOWNGRADEPLANS, RECORDS, wire.WORKLOADKINDS)


@dataclass(frozen=True, slots=True)
class Examination:
    """Everything that ``doctor`` found out about a cluster."""

    there: Installation
    detection: Detection | None
    """None if the user's rights do not show the dialect."""
    dialect_unknown: str
    """Why ``detection`` is None."""
    missing_crds: tuple[str, ...]
    observed: ObservedCluster
    crds_release: str = ""
    """The version of claimctl that the CRDs are from; '' if it is not known."""


async def examine(
    client: Client, clock: Clock, override: str = "auto", namespace: str = ""
) -> Examination:
    """Read the cluster, or one namespace of it. A missing right is no error."""
    reader = _Reader(client, namespace)
    async with side_by_side() as group:
        installation = group.create_task(read_installation(client, clock))
        release = group.create_task(read_crds_release(client))
        plurals = group.create_task(Discovery(client).plurals(_CRDS[0].group, _CRDS[0].version))
        detection, unknown = await _detect(client, override)
        observed = await _observe(reader, clock, detection)
    there, own = installation.result(), plurals.result()
    missing = tuple(f"{crd.plural}.{crd.group}" for crd in _CRDS if crd.plural not in own)
    asked = _account_to_ask(there, missing)
    lacking: tuple[str, ...] = ()
    rights_refused = OUTSIDE if there.outside else NOT_INSTALLED
    async with side_by_side() as group:
        kinds = group.create_task(kind_problems(client, asked, observed.reservations))
        if asked is not None:
            lacking, rights_refused = await lacking_rights(
                client, asked, detection, there.kubernetes
            )
    observed = replace(observed, kinds=kinds.result())
    try:
        asking = observed.asking_sticky
        in_the_way = await sticky_problems(client, asked, asking) if asking else ()
        observed = replace(observed, sticky=in_the_way)
    except Forbidden as error:
        reader.refused[STICKY_CHECK] = f"you may not do this: {error.message}"
    if rights_refused:
        reader.refused["permissions"] = rights_refused
    return Examination(
        there=there,
        detection=detection,
        dialect_unknown=unknown,
        missing_crds=missing,
        observed=replace(observed, missing_rights=lacking, refused=reader.refused),
        crds_release=release.result(),
    )


def _account_to_ask(there: Installation, missing: tuple[str, ...]) -> ControllerAccount | None:
    """Whose rights are checked: the account of the controller's Deployment, or else the usual one.

    None if no Deployment is known and claimctl is not installed, because CRDs are ``missing``, or
    the controller that acts has none.
    """
    if there.account is None and (missing or there.outside):
        return None
    return there.account or ControllerAccount(INSTALLED)


async def _detect(client: Client, override: str) -> tuple[Detection | None, str]:
    """The dialect, or why it is not known. The controller may create claims only in its own
    namespace."""
    try:
        return await DialectProbe(client, override=override).detect(), ""
    except DialectUnknown as error:
        with suppress(DialectUnknown):
            probe = DialectProbe(client, override=override, namespace=INSTALLED)
            return await probe.detect(), ""
        return None, str(error)


@dataclass(slots=True)
class _Reader:
    """Lists resources, and notes which checks a missing right prevents."""

    client: Client
    namespace: str
    refused: dict[str, str] = field(default_factory=dict)
    not_listed: set[Resource[Any]] = field(default_factory=set)
    listed: dict[Resource[Any], asyncio.Future[Listing[Any]]] = field(default_factory=dict)
    """What ``listing_once`` lists."""

    async def listing(self, resource: Resource[T], *checks: str) -> Listing[T]:
        """The objects; none if the user may not list them. Then the checks are not possible."""
        try:
            where = self.namespace if resource.namespaced else ""
            return await list_if_served(self.client, resource, where)
        except Forbidden:
            self.not_listed.add(resource)
            for check in checks:
                self.refuse(check, resource)
            return Listing((), "")

    async def listing_once(self, resource: Resource[T], *checks: str) -> Listing[T]:
        """The same, by one request however many checks need the objects."""
        if resource not in self.listed:
            self.listed[resource] = asyncio.ensure_future(self.listing(resource))
        listing: Listing[T] = await self.listed[resource]
        if resource in self.not_listed:
            for check in checks:
                self.refuse(check, resource)
        return listing

    def refuse(self, check: str, resource: Resource[Any]) -> None:
        place = f"in namespace {self.namespace}" if self.namespace else "in all namespaces"
        where = f" {place}" if resource.namespaced else ""
        hint = " (-n NAME checks one namespace)" if where and not self.namespace else ""
        self.refused.setdefault(check, f"you may not list {resource.plural}{where}{hint}")


async def _observe(reader: _Reader, clock: Clock, detection: Detection | None) -> ObservedCluster:
    """List everything that the checks need, and sort it into what they are functions of."""
    groups = bool(detection and detection.groups_version)
    old = detection is not None and detection.groups_version == OLD
    async with side_by_side() as group:
        scanning = group.create_task(_scan(reader, clock))
        tasks = {
            resource: group.create_task(reader.listing_once(resource, *checks))
            for resource, checks in _wanted(groups=groups).items()
        }
        more = await _of_extensions(reader, clock)
    scan = scanning.result()
    every: dict[Resource[Any], Listing[Any]] = {it: task.result() for it, task in tasks.items()}
    reservations = every[wire.CLAIMRESERVATIONS].items
    scanned_claims = scan.claims if scan else ()
    kinds = (*WORKLOADS.values(), *((wire.PODGROUPS,) if groups else ()))
    observed = ObservedCluster(
        dialect=detection.dialect if detection else recorded_dialect(reservations),
        claims=tuple(scanned.claim for scanned in scanned_claims),
        orphans=_orphans(scanned_claims),
        uids={
            **({(wire.PODS.group, wire.PODS.plural): scan.pods} if scan else {}),
            **{(kind.group, kind.plural): uids(every[kind]) for kind in kinds},
        },
        nodes=every[wire.NODES].items,
        events=every[wire.EVENTS].items,
        unreadable=_unreadable(scan, every),
        annotations=await _annotations(reader.client, every, reservations),
        asking_sticky=_asking_sticky(every),
        reservations=reservations,
        plans=every[wire.DOWNGRADEPLANS].items,
        behind=await _behind(reader, clock, reservations),
        in_use=frozenset(
            scanned.claim.metadata.uid
            for scanned in scanned_claims
            if Consumers.of(scanned.live.pods).bound
        ),
        starting=_starting(scan) if scan else None,
        missing_claims=missing_claims(scan, clock.now()) if scan else (),
        matters=matters_of(scanned_claims, reservations, _places(reader, every), clock.now()),
        slices=every[PUBLISHED_DEVICES].items,
        more_checks={
            check: text
            for extension in extensions().values()
            for check, text in extension.checks.items()
        },
        more_problems=more,
        old_groups=len(every[wire.PODGROUPS].items) if old else 0,
    )
    return await _looked_again(reader, clock, observed)


def _wanted(*, groups: bool) -> dict[Resource[Any], tuple[str, ...]]:
    """By resource that is listed: the checks that are not possible without it.

    Args:
        groups: whether the cluster serves PodGroups.
    """
    return {
        wire.NODES: ("mixed-versions", "held-devices", "kubelets"),
        wire.CLAIMRESERVATIONS: ("reservations", "unreadable-objects", "kinds", "held-devices"),
        **dict.fromkeys(WORKLOADS.values(), ("annotations",)),
        **({wire.PODGROUPS: ("dangling-references",)} if groups else {}),
        wire.EVENTS: ("refused-pods",),
        PUBLISHED_DEVICES: ("drivers", "held-devices"),
        wire.DEVICECLASSES: (),
        wire.REPLICASETS: (),
        wire.DOWNGRADEPLANS: ("plans",),
    }


async def _of_extensions(reader: _Reader, clock: Clock) -> tuple[Finding, ...]:
    """What the checks of extensions found."""
    return tuple(
        [
            Finding(it.check, it.message, it.namespace, it.object)
            for extension in extensions().values()
            for it in await extension.examine(reader.listing_once, clock.now())
        ]
    )


def _places(reader: _Reader, every: Mapping[Resource[Any], Listing[Any]]) -> Places:
    """What the cluster publishes, as far as the user may list it."""

    def known(resource: Resource[Any]) -> Listing[Any] | None:
        return None if resource in reader.not_listed else every[resource]

    plans = known(wire.DOWNGRADEPLANS)
    published = (known(PUBLISHED_DEVICES), known(wire.NODES), known(wire.DEVICECLASSES))
    return places_of(*published, None if plans is None else plans.items)


def _unreadable(
    scan: ClaimScan | None, every: Mapping[Resource[Any], Listing[Any]]
) -> tuple[Unreadable, ...]:
    """Everything that cannot be read, each once: a scan has the ClaimReservations, too."""
    others = (
        unread
        for resource, listing in every.items()
        if resource is not wire.CLAIMRESERVATIONS
        for unread in listing.unreadable
    )
    return (*(scan or every[wire.CLAIMRESERVATIONS]).unreadable, *others)


async def _looked_again(
    reader: _Reader, clock: Clock, observed: ObservedCluster
) -> ObservedCluster:
    """What was observed, without the entries of objects that are gone which leave their lists
    during the ``PAUSES``. Most do: kube-controller-manager and the controller take them out."""
    for pause in PAUSES:
        doubtful = in_doubt(observed)
        if not 0 < len(doubtful) <= _FEW_CLAIMS:
            break
        await clock.sleep(pause)
        left: dict[str, ResourceClaim] = {}
        for claim in doubtful:
            meta = claim.metadata
            try:
                now = await reader.client.find(wire.RESOURCECLAIMS, meta.name, meta.namespace)
            except Forbidden:
                return observed
            status = structs.replace(claim.status, reserved_for=still_listed(claim, now))
            left[meta.uid] = structs.replace(claim, status=status)
        claims = tuple(left.get(claim.metadata.uid, claim) for claim in observed.claims)
        made = (await reader.listing(wire.CLAIMRESERVATIONS)).items
        observed = replace(observed, claims=claims, reservations=made)
    return observed


_FEW_CLAIMS = 20
"""Of more claims than these, no entries of objects that are gone are looked at again."""


async def _scan(reader: _Reader, clock: Clock) -> ClaimScan | None:
    """The claims with their users and owners; None if the user may not list one of them."""
    try:
        return await scan_claims(
            reader.client, clock, reader.namespace, claims=CLAIMS_WITH_REQUESTS
        )
    except Forbidden as error:
        plural = error.path.rpartition("/")[2]
        known = {listed.plural: listed for listed in (wire.PODS, wire.CLAIMRESERVATIONS)}
        for check in _OF_CLAIMS:
            reader.refuse(check, known.get(plural, wire.RESOURCECLAIMS))
        return None


def _starting(scan: ClaimScan) -> frozenset[str]:
    """See ``ObservedCluster.starting``."""
    users = (pod for pods in scan.users.values() for pod in pods)
    return frozenset(
        pod.metadata.uid for pod in users if is_bound(pod) and pod.status.phase == "Pending"
    )


async def _annotations(
    client: Client,
    every: Mapping[Resource[Any], Listing[Any]],
    reservations: tuple[ClaimReservation, ...],
) -> tuple[Finding, ...]:
    findings: list[Finding] = []
    kinds = KindReader(client)
    for (group, kind), resource in WORKLOADS.items():
        for workload in every[resource].items:
            ref = WorkloadRef(api_group=group, kind=kind, name=workload.metadata.name)
            place = workload.metadata.namespace
            of_it = tuple(made for made in reservations if made.metadata.namespace == place)
            annotated = Annotated(ref, resource.api_version, workload, of_it)
            wanted = plan(annotated)
            if wanted.problems:
                # a copy is of no effect, whatever it says
                authority = await kinds.who_decides(RESERVE_ANNOTATION, workload.metadata)
                wanted = plan(replace(annotated, authority=authority))
            name = f"{kind.lower()}/{ref.name}"
            wrong = (*wanted.problems, *sticky.problems(workload, ref, ()))
            notes = (*misspelled(workload.metadata), *(it.note for it in wrong))
            findings += [Finding("annotations", note, place, name) for note in dict.fromkeys(notes)]
    return tuple(findings)


def _asking_sticky(every: Mapping[Resource[Any], Listing[Any]]) -> tuple[str, ...]:
    """The workloads whose pods are to have sticky claims, as namespace/kind/name."""
    return tuple(
        f"{workload.metadata.namespace}/{resource.kind.lower()}/{workload.metadata.name}"
        for resource in WORKLOADS.values()
        for workload in every[resource].items
        if asks(workload)
    )


async def _behind(
    reader: _Reader, clock: Clock, reservations: tuple[ClaimReservation, ...]
) -> frozenset[str]:
    """The ClaimReservations whose status is behind now and at each look during the ``PAUSES``."""

    def late(reservations: Iterable[ClaimReservation]) -> frozenset[str]:
        known = ((made.metadata, made.status.observed_generation) for made in reservations)
        return frozenset(meta.uid for meta, seen in known if seen != meta.generation)

    behind = late(reservations)
    for pause in PAUSES if behind else ():
        await clock.sleep(pause)
        behind &= late((await reader.listing(wire.CLAIMRESERVATIONS)).items)
        if not behind:
            break
    return behind


def _orphans(claims: Iterable[ScannedClaim]) -> dict[str, Orphan]:
    """The orphans by claim UID, as ``claimctl doctor orphans`` finds them."""
    judged = {scanned.claim.metadata.uid: judge(scanned) for scanned in claims}
    return {uid: orphan for uid, orphan in judged.items() if orphan is not None}
