"""The admission of a server: policies and webhooks, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from kube_in_process.admission import mutating, validating, webhooks
from kube_in_process.admission.matching import unguarded
from kube_in_process.admission.request import GROUP, AdmissionRequest, AdmissionServer
from kube_in_process.admission.webhooks import Hook
from kube_in_process.webhook_calls import Replies

_Step = Callable[[AdmissionRequest], AdmissionRequest]
_KINDS = (mutating.POLICIES, webhooks.MUTATING, validating.POLICIES, webhooks.VALIDATING)


class AdmissionChain:
    """Asks what is stored now; a real server takes some milliseconds to notice a change."""

    def __init__(self, server: AdmissionServer) -> None:
        self._server = server

    @property
    def is_idle(self) -> bool:
        """Whether the cluster has no policies and no webhooks."""
        return not any(len(self._server.store.items(GROUP, plural)) for plural in _KINDS)

    def mutate(
        self, request: AdmissionRequest, replies: Replies, warnings: list[str]
    ) -> AdmissionRequest:
        """The request with the object as policies and webhooks change it.

        Raises:
            StatusError: a refusal.
            CallsWanted: answers of webhooks are missing.
        """
        if unguarded(request):
            return request
        before = request
        first = mutating.mutate(self._server, request) if request.obj is not None else None
        request = first.request if first is not None else request
        again: list[tuple[_Step, AdmissionRequest]] = []
        for hook in self._mutating_hooks(request, replies):
            step: _Step = partial(self._hooked, hook, replies=replies, warnings=warnings)
            request = step(request)
            if hook.spec.get("reinvocationPolicy") == "IfNeeded":
                again.append((step, request))
        if first is not None and request.obj != before.obj:
            request = mutating.mutate(self._server, request, first.repeatable).request
        for step, after in again:
            if request.obj != after.obj:
                request = step(request)
        return request

    def _mutating_hooks(self, request: AdmissionRequest, replies: Replies) -> Iterable[Hook]:
        if replies.none_asked:
            return ()
        return webhooks.hooks(self._server, webhooks.MUTATING, request)

    def _hooked(
        self, hook: Hook, request: AdmissionRequest, replies: Replies, warnings: list[str]
    ) -> AdmissionRequest:
        return webhooks.mutate(self._server, hook, request, replies, warnings)

    def validate(self, request: AdmissionRequest, replies: Replies, warnings: list[str]) -> None:
        """Let policies and webhooks refuse a write.

        Raises:
            StatusError: a refusal.
            CallsWanted: answers of webhooks are missing.
        """
        if unguarded(request):
            return
        validating.validate(self._server, request, warnings)
        if not replies.none_asked:
            webhooks.validate(self._server, request, replies, warnings)
