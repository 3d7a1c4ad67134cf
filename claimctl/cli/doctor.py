"""``claimctl doctor``: the cluster's dialect with reasons, and problems to look at."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from claimctl.cli.errors import ExitCode
from claimctl.cli.options import (
    AsOption,
    ContextOption,
    KubeconfigOption,
    Structured,
    StructuredOption,
)

if TYPE_CHECKING:
    from claimctl.cli.output import Table
    from claimctl.cli.session import Session
    from claimctl.controller.dialect.api_versions import Served
    from claimctl.controller.dialect.probe import Detection
    from claimctl.inspect.cluster_checks import Finding, Observed
    from claimctl.kube.client import Client
    from claimctl.kube.codec import Listing
    from claimctl.wire.coordination import Event
    from claimctl.wire.resources import Resource
    from claimctl.wire.unreadable import Unreadable

INSTALLED = "claimctl-system"
"""The namespace of the controller, if it was installed as README.md says."""


def command(
    dialect: Annotated[
        str,
        typer.Option(
            "--dialect", help="Assume this dialect: native, podgroup or hold; auto finds it out."
        ),
    ] = "auto",
    output: StructuredOption = Structured.TABLE,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    as_user: AsOption = None,
) -> int:
    """Show the cluster's dialect with reasons, and problems; exit code 3 with problems.

    The check of rights concerns your own user. To check the controller's rights, use
    --as system:serviceaccount:claimctl-system:claimctl-controller.
    """
    from claimctl.cli.errors import CommandFailed, UsageError
    from claimctl.cli.session import Access, in_session
    from claimctl.controller.dialect.probe import DialectUnknown

    known = ("auto", "native", "podgroup", "hold")
    if dialect not in known:
        raise UsageError(f"--dialect: {dialect!r} is not one of {', '.join(known)}")

    async def work(session: Session) -> int:
        return await run(session, dialect, output)

    try:
        return in_session(Access(kubeconfig, context, as_user), work)
    except DialectUnknown as error:
        raise CommandFailed(str(error)) from error


async def run(session: Session, override: str, output: Structured) -> int:
    from claimctl.cli.output import render
    from claimctl.controller.dialect.api_versions import look
    from claimctl.inspect.cluster_checks import findings

    served = await look(session.client)
    detection = await _detect(session.client, override)
    found = findings(await _observe(session, detection))
    render(output, _table(detection, served, found), _document(detection, served, found))
    return ExitCode.FINDINGS if found else ExitCode.OK


async def _detect(client: Client, override: str) -> Detection:
    """Detect the dialect. The controller may create claims only in its own namespace.

    Raises:
        DialectUnknown: the caller may create claims neither in ``default`` nor there.
    """
    from claimctl.controller.dialect.probe import DialectProbe, DialectUnknown

    try:
        return await DialectProbe(client, override=override).detect()
    except DialectUnknown as unknown:
        with suppress(DialectUnknown):
            return await DialectProbe(client, override=override, namespace=INSTALLED).detect()
        raise unknown from None


async def _observe(session: Session, detection: Detection) -> Observed:
    from claimctl.controller.preflight import missing_rights
    from claimctl.inspect.cluster_checks import Observed, orphans, uids
    from claimctl.orphans.scan import scan_claims
    from claimctl.reservation.dialects import DIALECTS
    from claimctl.wire import resources

    client = session.client
    holders = (
        resources.DEPLOYMENTS,
        resources.STATEFULSETS,
        resources.JOBS,
        *((resources.PODGROUPS,) if detection.groups_version else ()),
    )
    seen = await scan_claims(client, session.clock)
    listed = {
        each.plural: await client.list_if_served(each) for each in (*holders, resources.NODES)
    }
    events = await _events(client)
    also = (resources.REPLICASETS, resources.RESOURCESLICES, resources.DOWNGRADEPLANS)
    return Observed(
        dialect=detection.dialect,
        claims=tuple(scanned.claim for scanned in seen.claims),
        orphans=orphans(seen.claims),
        uids={
            resources.PODS.plural: seen.pods,
            **{each.plural: uids(listed[each.plural]) for each in holders},
        },
        nodes=listed[resources.NODES.plural].items,
        events=events.items,
        unreadable=(
            *seen.unreadable,
            *(unread for found in listed.values() for unread in found.unreadable),
            *events.unreadable,
            *[unread for each in also for unread in await _unread(client, each)],
        ),
        missing_rights=await missing_rights(
            client,
            binding=detection.needs_binding,
            groups=DIALECTS[detection.dialect].groups,
        ),
    )


async def _events(client: Client) -> Listing[Event]:
    """The Events; none, with a warning, if the user may not list them, as the controller."""
    from claimctl.kube.codec import Listing
    from claimctl.kube.errors import Forbidden
    from claimctl.wire.resources import EVENTS

    try:
        return await client.list_if_served(EVENTS)
    except Forbidden:
        text = "warning: you may not list Events, so pods that kubelets refused are not reported"
        typer.echo(text, err=True)
        return Listing((), "")


async def _unread(client: Client, resource: Resource[Any]) -> tuple[Unreadable, ...]:
    """Objects of a resource that cannot be read; none if the user may not list it."""
    from claimctl.kube.errors import Forbidden

    try:
        return (await client.list_if_served(resource)).unreadable
    except Forbidden:
        return ()


def _facts(detection: Detection, served: Served) -> list[tuple[str, str]]:
    major, minor = detection.version
    return [
        ("dialect", detection.dialect),
        *(("reason", reason) for reason in detection.reasons),
        ("kubernetes", f"{major}.{minor}"),
        ("resource.k8s.io", ", ".join(served.claims) or "not served"),
        ("podgroups", ", ".join(served.groups) or "not served"),
    ]


def _table(detection: Detection, served: Served, found: tuple[Finding, ...]) -> Table:
    from claimctl.cli.output import Column, Table

    facts = [("fact", name, value) for name, value in _facts(detection, served)]
    findings = [(each.check, _where(each), each.message) for each in found]
    return Table(
        columns=(Column("CHECK"), Column("OBJECT"), Column("WHAT")), rows=(*facts, *findings)
    )


def _where(finding: Finding) -> str:
    return "/".join(filter(None, (finding.namespace, finding.object)))


def _document(
    detection: Detection, served: Served, found: tuple[Finding, ...]
) -> dict[str, object]:
    from dataclasses import asdict

    return {
        "apiVersion": "cli.claimctl.io/v1alpha1",
        "kind": "Diagnosis",
        "dialect": detection.dialect,
        "reasons": list(detection.reasons),
        "kubernetesVersion": ".".join(map(str, detection.version)),
        "servedVersions": {
            "resource.k8s.io": list(served.claims),
            "podgroups.scheduling.k8s.io": list(served.groups),
        },
        "findings": [asdict(each) for each in found],
    }
