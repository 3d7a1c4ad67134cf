"""Requests with plain documents (dicts), with the errors of claimctl's own client."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from kube_in_process.real import client
from kube_in_process.real.client import MERGE, KindNotServed, NoAnswer, PathOfKind, WholeAnswer

from claimctl.kube.errors import BadAnswer, NotServed, from_answer
from claimctl.wire.base import Object, decode
from claimctl.wire.seams import Query


@dataclass
class DocumentClient(client.DocumentClient):
    """A small client like ``kubectl`` that raises KubeErrors and what its transport raises."""

    name: str = "demo"

    async def served(self, api_version: str, kind: str) -> PathOfKind:
        """The path of the kind; raises NotServed."""
        try:
            return await super().served(api_version, kind)
        except KindNotServed:
            raise NotServed(api_version, kind) from None

    async def ask(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        patch_type: str = MERGE,
        query: Query = (),
    ) -> WholeAnswer:
        try:
            return await super().ask(method, path, body, patch_type, query)
        except NoAnswer as failed:
            raise failed.__cause__ or failed from None

    def document(self, answer: WholeAnswer) -> Object:
        """The document of an answer. Raises ApiError, and BadAnswer if it cannot be read."""
        method, path = answer.method, answer.path
        if answer.status >= 400:
            raise from_answer(method, path, answer.status, answer.headers, answer.body)
        try:
            return decode(answer.body, Object)
        except msgspec.MsgspecError as error:
            raise BadAnswer(method, path, message=f"unexpected answer: {error}") from error
