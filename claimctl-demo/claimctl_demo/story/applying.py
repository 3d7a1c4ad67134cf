"""Creates the objects of manifests on an empty cluster, or reports what is wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from claimctl.kube.errors import ApiError, NotServed
from claimctl.text import counted
from claimctl.wire.base import Object
from claimctl_demo.documents import DocumentClient
from claimctl_demo.story.invent import invented
from claimctl_demo.story.manifests import Manifest
from claimctl_demo.story.objects import namespace
from claimctl_demo.story.report import Printer

NODES = 3


class BadManifests(Exception):
    """The manifests cannot be played; ``problems`` has one line for each problem."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(f"{len(problems)} problems")
        self.problems = tuple(problems)


@dataclass(slots=True)
class Application:
    """Creates all ``manifests``.

    Attributes:
        dialect: that of the cluster, for messages.
        api: the version of resource.k8s.io that the cluster serves.
    """

    user: DocumentClient
    manifests: Sequence[Manifest]
    printer: Printer
    dialect: str
    api: str
    _refused_namespaces: set[str] = field(default_factory=set)

    async def apply(self) -> None:
        """Create namespaces, invented devices, then all objects in the order of the files.

        Raises:
            BadManifests: the server refuses an object; only namespaces were created.
        """
        await self._check(await self._prepare())
        await self._create()

    async def _prepare(self) -> list[str]:
        """Create namespaces, and invented DeviceClasses and devices; returns the problems."""
        problems = []
        named = [each for each in self.manifests if each.kind == "Namespace"]
        for each in named:
            found = await self._try(each, dry_run=False)
            problems += found
            if found:
                self._refused_namespaces.add(each.name)
        mentioned = dict.fromkeys(each.namespace for each in self._objects())
        for name in mentioned:
            if name not in {"default", "kube-system", *(each.name for each in named)}:
                problems += await self._make_namespace(name)
        nodes = [f"node-{number}" for number in range(NODES)]
        bodies = invented(self.manifests, nodes, self.api)
        for body in bodies:
            await self._invent(body)
        drivers = {each["spec"]["driver"] for each in bodies if each["kind"] == "ResourceSlice"}
        if drivers:
            self.printer.text(f"devices of {', '.join(sorted(drivers))} are invented")
        return problems

    async def _make_namespace(self, name: str) -> list[str]:
        """Create a namespace that the manifests mention but do not define."""
        try:
            await self.user.create(namespace(name))
        except ApiError as refused:
            self._refused_namespaces.add(name)
            where = next(each.where for each in self._objects() if each.namespace == name)
            return [f"{where}: metadata.namespace: {refused.message}"]
        self.printer.text(f"namespace {name} is made")
        return []

    async def _invent(self, body: Object) -> None:
        """Create a DeviceClass or ResourceSlice; an invalid name is reported later."""
        with contextlib.suppress(ApiError):
            await self.user.create(body)

    async def _check(self, problems: list[str]) -> None:
        """Let the server validate everything by a dry run before anything is created."""
        for each in self._objects():
            if each.namespace not in self._refused_namespaces:
                problems += await self._try(each, dry_run=True)
        if problems:
            raise BadManifests(problems)

    async def _create(self) -> None:
        problems = []
        for each in self._objects():
            problems += await self._try(each, dry_run=False)
        if problems:
            raise BadManifests(problems)
        self.printer.text(f"{counted(len(self.manifests), 'object')} created")

    def _objects(self) -> list[Manifest]:
        return [each for each in self.manifests if each.kind != "Namespace"]

    async def _try(self, manifest: Manifest, *, dry_run: bool) -> list[str]:
        try:
            created = await self.user.create(manifest.body, dry_run=dry_run)
        except NotServed as missing:
            return [f"{manifest.where}: {missing}{self._hint(manifest)}"]
        except ApiError as refused:
            return [f"{manifest.where}: {cause}" for cause in refused.causes]
        if not dry_run:
            manifest.body["metadata"]["name"] = created["metadata"]["name"]
        return []

    def _hint(self, manifest: Manifest) -> str:
        """Advice for a refused object: PodGroups need the dialect podgroup."""
        if manifest.group == "scheduling.k8s.io":
            return (
                f" (mode {self.dialect}): PodGroups need a cluster of the mode podgroup: "
                "--reservation-mode podgroup"
            )
        return ""
