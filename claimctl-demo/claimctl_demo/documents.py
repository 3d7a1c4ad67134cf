"""Requests with plain documents (dicts), like those of kubectl, for any kind that is served."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from claimctl.kube.errors import ApiError, BadAnswer, NotFound, NotServed, from_answer
from claimctl.wire.base import Object, decode, encode, from_plain
from claimctl.wire.seams import Query, Transport
from claimctl.wire.served import ApiResourceList

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
Version = tuple[str, str]
"""apiVersion and kind."""


@dataclass(frozen=True, slots=True)
class ServedPath:
    """The path of a kind on the server."""

    path: str
    plural: str
    namespaced: bool

    def at(self, namespace: str, name: str = "") -> str:
        parts = [self.path]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        return "/".join([*parts, self.plural, *([name] if name else [])])


@dataclass(slots=True)
class DocumentClient:
    """A small client like ``kubectl``. It asks once which kinds an API group serves.

    ``name`` is the user agent, and thereby also the field manager of its writes.
    """

    transport: Transport
    name: str = "demo"
    _served: dict[str, dict[str, ServedPath]] = field(default_factory=dict)

    async def create(self, body: Object, *, dry_run: bool = False) -> Object:
        """Create an object from a manifest, in the namespace of its metadata.

        Raises:
            ApiError: validation or admission refused the object, or it exists already.
            NotServed: the server does not serve the kind.
        """
        served = await self.served(body["apiVersion"], body["kind"])
        query = (("dryRun", "All"),) if dry_run else ()
        namespace = body["metadata"].get("namespace") or "default"
        return await self._send("POST", served.at(namespace), body, query)

    async def post(
        self, kind: Version, namespace: str, name: str, subresource: str, body: Object
    ) -> Object:
        """Create under a subresource of an object, such as ``eviction`` of a pod.

        Raises:
            ApiError: the server refused it; an eviction that a budget forbids has the code 429.
        """
        path = f"{(await self.served(*kind)).at(namespace, name)}/{subresource}"
        return await self._send("POST", path, body)

    async def get(self, kind: Version, namespace: str, name: str) -> Object:
        return await self._send("GET", (await self.served(*kind)).at(namespace, name))

    async def patch(self, kind: Version, namespace: str, name: str, patch: Object) -> Object:
        """Send a merge patch without a resourceVersion."""
        served = await self.served(*kind)
        return await self._send("PATCH", served.at(namespace, name), patch)

    async def patch_status(
        self, kind: Version, namespace: str, name: str, patch: Object, patch_type: str = MERGE
    ) -> Object:
        """Patch the status. With ``STRATEGIC``, lists such as conditions merge by their keys."""
        served = await self.served(*kind)
        path = f"{served.at(namespace, name)}/status"
        return await self._send("PATCH", path, patch, patch_type=patch_type)

    async def resize(self, namespace: str, name: str, patch: Object) -> Object:
        """Patch the sizes of a pod; containers merge by their names.

        Raises:
            ApiError: validation or admission refused the change.
        """
        served = await self.served("v1", "Pod")
        path = f"{served.at(namespace, name)}/resize"
        return await self._send("PATCH", path, patch, patch_type=STRATEGIC)

    async def apply(self, body: Object, manager: str, *, dry_run: bool = False) -> Object:
        """Apply a manifest on the server's side; fields of other managers become this manager's.

        Raises:
            ApiError: validation or admission refused the object.
            NotServed: the server does not serve the kind.
        """
        served = await self.served(body["apiVersion"], body["kind"])
        meta = body["metadata"]
        path = served.at(meta.get("namespace") or "default", meta["name"])
        query = (("fieldManager", manager), ("force", "true"))
        wanted = (*query, ("dryRun", "All")) if dry_run else query
        return await self._send("PATCH", path, body, wanted, APPLY)

    async def list(self, kind: Version, namespace: str = "") -> list[Object]:
        """List all objects of a kind, and add the kind and apiVersion that a list omits."""
        served = await self.served(*kind)
        listing = await self._send("GET", served.at(namespace))
        api_version, name = kind
        return [
            {"apiVersion": api_version, "kind": name, **item} for item in listing.get("items") or ()
        ]

    async def delete(
        self, kind: Version, namespace: str, name: str, options: Object | None = None
    ) -> None:
        """Delete an object, by default in the background. An object that is gone is no error."""
        served = await self.served(*kind)
        wanted = {"propagationPolicy": "Background"} if options is None else options
        with suppress(NotFound):
            await self._send("DELETE", served.at(namespace, name), wanted)

    async def served(self, api_version: str, kind: str) -> ServedPath:
        """The path of the kind; raises NotServed."""
        if kind not in self._served.get(api_version, {}):
            self._served[api_version] = await self._discover(api_version)
        try:
            return self._served[api_version][kind]
        except KeyError:
            raise NotServed(api_version, kind) from None

    async def _discover(self, api_version: str) -> dict[str, ServedPath]:
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        try:
            listing = from_plain(await self._send("GET", path), ApiResourceList)
        except ApiError:
            return {}
        except msgspec.MsgspecError as error:
            raise BadAnswer("GET", path, message=f"unexpected answer: {error}") from error
        return {
            resource.kind: ServedPath(path, resource.name, resource.namespaced)
            for resource in listing.resources or ()
            if "/" not in resource.name
        }

    async def _send(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        query: Query = (),
        patch_type: str = MERGE,
    ) -> Object:
        kind = patch_type if method == "PATCH" else "application/json"
        headers = {"content-type": kind, "accept": "application/json", "user-agent": self.name}
        data = encode(body) if body is not None else None
        response = await self.transport.send(method, path, query, headers, data)
        try:
            answer = b"".join([part async for part in response.body])
        finally:
            await response.close()
        if response.status >= 400:
            raise from_answer(method, path, response.status, response.headers, answer)
        try:
            return decode(answer, Object)
        except msgspec.MsgspecError as error:
            raise BadAnswer(method, path, message=f"unexpected answer: {error}") from error
