"""Admission webhooks: what they are asked, and what their answers do."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kube_in_process.admission.expressions import Failed, conditions_hold, names_of
from kube_in_process.admission.matching import matched_version
from kube_in_process.admission.mutating import as_read, patched
from kube_in_process.admission.params import name_of
from kube_in_process.admission.request import (
    CREATE,
    GROUP,
    AdmissionRequest,
    AdmissionServer,
    in_version,
    internal_error,
)
from kube_in_process.errors import StatusError, forbidden
from kube_in_process.kinds.metadata import new_uid
from kube_in_process.objects import Object
from kube_in_process.patch.json_patch import PatchError
from kube_in_process.webhook_calls import CallsWanted, Replies, WebhookCall, WebhookReply

MUTATING, VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"
_REVIEW = "AdmissionReview"
_VERSIONS = ("v1", "v1beta1")


@dataclass(frozen=True, slots=True)
class Hook:
    """A webhook that concerns a request, whose objects are shown in ``version``."""

    configuration: str
    spec: Object
    version: str

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def reviewed_as(self) -> str:
        """The version of the AdmissionReview."""
        given: list[str] = self.spec["admissionReviewVersions"]
        return next(version for version in given if version in _VERSIONS)

    def failed(self, why: str) -> StatusError | None:
        """The refusal of a request whose webhook failed; None if that is ignored."""
        if self.spec.get("failurePolicy", "Fail") == "Ignore":
            return None
        return internal_error(f'failed calling webhook "{self.name}": {why}')


def hooks(server: AdmissionServer, plural: str, request: AdmissionRequest) -> Iterator[Hook]:
    """The webhooks of all configurations that concern a request, in their order.

    Raises:
        StatusError: 403, a match condition failed.
    """
    for configuration in sorted(server.store.list(GROUP, plural), key=name_of):
        for spec in configuration.get("webhooks") or ():
            match = {**spec, "rules": spec.get("rules") or ()}
            version = matched_version(server, match, request)
            if version is not None:
                hook = Hook(name_of(configuration), spec, version)
                if _is_wanted(server, hook, request):
                    yield hook


def _is_wanted(server: AdmissionServer, hook: Hook, request: AdmissionRequest) -> bool:
    conditions = hook.spec.get("matchConditions") or ()
    if not conditions:
        return True
    names = names_of(server, in_version(server, request, hook.version))
    try:
        return conditions_hold(names, conditions)
    except Failed as error:
        if hook.spec.get("failurePolicy", "Fail") == "Ignore":
            return False
        raise forbidden(request.subject, str(error)) from None


def validate(
    server: AdmissionServer, request: AdmissionRequest, replies: Replies, warnings: list[str]
) -> None:
    """Ask the validating webhooks, all at the same time.

    Raises:
        StatusError: the first refusal.
        CallsWanted: answers are missing.
    """
    asked = [(hook, _call(server, hook, request)) for hook in hooks(server, VALIDATING, request)]
    missing = [call for _, call in asked if replies.to(call) is None]
    if missing:
        raise CallsWanted(missing)
    for hook, call in asked:
        response = _response(hook, replies.to(call), patches=False)
        if response is not None:
            _allowed(hook, response, warnings)


def mutate(
    server: AdmissionServer,
    hook: Hook,
    request: AdmissionRequest,
    replies: Replies,
    warnings: list[str],
) -> AdmissionRequest:
    """The request with the object as one webhook changes it.

    Raises:
        StatusError: the refusal of the webhook, or its failure.
        CallsWanted: its answer is missing.
    """
    call = _call(server, hook, request)
    reply = replies.to(call)
    if reply is None:
        raise CallsWanted([call])
    response = _response(hook, reply, patches=True)
    if response is None:
        return request
    _allowed(hook, response, warnings)
    operations = _operations(hook, response)
    if not operations:
        return request
    if request.obj is None:
        why = "attempted to modify the object, which is not supported for this operation"
        raise internal_error(f'admission webhook "{hook.name}" {why}')
    shown = in_version(server, request, hook.version)
    try:
        changed = patched(shown.obj or {}, operations)
    except PatchError as error:
        raise internal_error(str(error)) from None
    changed_request = shown.with_object(as_read(server, shown, changed))
    return in_version(server, changed_request, request.version)


def _call(server: AdmissionServer, hook: Hook, request: AdmissionRequest) -> WebhookCall:
    shown = in_version(server, request, hook.version)
    asked = {**shown.document(), "object": shown.obj, "oldObject": shown.old}
    uid, version = new_uid(server.rng), hook.reviewed_as
    review = {
        "kind": _REVIEW,
        "apiVersion": f"admission.k8s.io/{version}",
        "request": {"uid": uid, **asked},
    }
    client = hook.spec["clientConfig"]
    bundle = client.get("caBundle") or ""
    return WebhookCall(
        key=_key(hook, asked),
        about=json.dumps([hook.configuration, hook.name, *_about(request)]),
        uid=uid,
        url=client["url"],
        ca_bundle=base64.b64decode(bundle).decode(errors="replace"),
        timeout=float(hook.spec.get("timeoutSeconds", 10)),
        body=json.dumps(review).encode(),
    )


def _about(request: AdmissionRequest) -> list[str]:
    old = ((request.old or {}).get("metadata") or {}).get("name", "")
    return [request.operation, request.resource, request.namespace, request.name or old]


_NEW_EACH_TIME = ("uid", "creationTimestamp", "managedFields")


def _key(hook: Hook, asked: Object) -> str:
    """The content of a call, without what the server makes anew at each try."""
    content = dict(asked)
    if asked["operation"] == CREATE and content["object"]:
        meta = content["object"].get("metadata") or {}
        changing = (*_NEW_EACH_TIME, "name") if meta.get("generateName") else _NEW_EACH_TIME
        kept = {key: value for key, value in meta.items() if key not in changing}
        content["object"] = {**content["object"], "metadata": kept}
        if "name" in changing:
            content.pop("name", None)
    else:
        content["object"] = _unmanaged(content["object"])
    return json.dumps([hook.configuration, hook.name, content], sort_keys=True)


def _unmanaged(obj: Object | None) -> Object | None:
    """An object without its managed fields, which have times."""
    if obj is None:
        return None
    meta = {k: v for k, v in (obj.get("metadata") or {}).items() if k != "managedFields"}
    return {**obj, "metadata": meta}


def _response(hook: Hook, reply: WebhookReply | None, *, patches: bool) -> Object | None:
    """The response of a webhook; None if it failed and that is ignored. Raises StatusError 500."""
    try:
        return _read(hook, reply, patches=patches)
    except _Invalid as error:
        refusal = hook.failed(str(error))
        if refusal is not None:
            raise refusal from None
        return None


class _Invalid(Exception):
    """An answer that cannot be used, or none. The text is the server's."""


def _read(hook: Hook, reply: WebhookReply | None, *, patches: bool) -> Object:
    if reply is None or reply.problem:
        raise _Invalid(f"failed to call webhook: {reply.problem if reply else ''}")
    try:
        review: Any = json.loads(reply.body)
    except ValueError as error:
        raise _Invalid(f"failed to call webhook: couldn't get version/kind; {error}") from None
    review = review if isinstance(review, dict) else {}
    response = review.get("response")
    invalid = "received invalid webhook response:"
    if not isinstance(response, dict):
        raise _Invalid(f"{invalid} webhook response was absent")
    if response.get("uid") != reply.uid and hook.reviewed_as == "v1":
        shown = f'expected response.uid="{reply.uid}", got "{response.get("uid", "")}"'
        raise _Invalid(f"{invalid} {shown}")
    wanted = f"admission.k8s.io/{hook.reviewed_as}"
    given = (review.get("apiVersion") or "", review.get("kind") or "")
    if given != (wanted, _REVIEW) and hook.reviewed_as == "v1":
        shown = f"{given[0] or '/'}, Kind={given[1]}"
        raise _Invalid(
            f"{invalid} expected webhook response of {wanted}, Kind={_REVIEW}, got {shown}"
        )
    if response.get("patch") and not patches:
        raise _Invalid(f"{invalid} validating webhook may not return response.patch")
    if response.get("patch") and not response.get("patchType") and hook.reviewed_as == "v1":
        why = "webhook returned response.patch but not response.patchType"
        raise _Invalid(f"{invalid} {why}")
    return response


def _allowed(hook: Hook, response: Object, warnings: list[str]) -> None:
    """Warn as the response says. Raises StatusError if it refuses the request."""
    warnings.extend(str(warning) for warning in response.get("warnings") or ())
    if response.get("allowed") is True:
        return
    status = response.get("status") or {}
    code = status.get("code") or 0
    why = status.get("message") or status.get("reason")
    text = f'admission webhook "{hook.name}" denied the request'
    raise StatusError(
        code if code >= 400 else 400,
        status.get("reason") or "",
        f"{text}: {why}" if why else f"{text} without explanation",
        status.get("details"),
    )


def _operations(hook: Hook, response: Object) -> list[Object]:
    if not response.get("patch"):
        return []
    try:
        operations = json.loads(base64.b64decode(response["patch"]))
    except (binascii.Error, ValueError) as error:
        refusal = hook.failed(f"received undecodable patch in webhook response: {error}")
        if refusal is not None:
            raise refusal from None
        return []
    return operations if isinstance(operations, list) else []
