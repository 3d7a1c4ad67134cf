"""Serve resource requests: call the verb for method and path, and return its answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from msgspec.structs import replace

from kube_in_process.errors import (
    StatusError,
    Subject,
    bad_request,
    not_allowed,
    not_found,
    unknown_resource,
)
from kube_in_process.http import answers
from kube_in_process.http import exchange as options
from kube_in_process.http.answers import Answer
from kube_in_process.http.bodies import check_custom, media_type, parse_object, parse_patch
from kube_in_process.http.exchange import Exchange
from kube_in_process.http.tables.shapes import ObjectShape, Tables
from kube_in_process.kinds.emulation import check_kind
from kube_in_process.kinds.kind import Kind
from kube_in_process.objects import Object
from kube_in_process.seams import HttpResponse
from kube_in_process.storage.raw_json import as_answered
from kube_in_process.storage.requests import WriteOptions
from kube_in_process.storage.store import encode
from kube_in_process.verbs.api import Api
from kube_in_process.verbs.watches import Event, Watch

_PATCHES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
    "application/apply-patch+cbor": "apply",
}
_CUSTOM_PATCHES = (
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
)


def serve(api: Api, views: Tables, exchange: Exchange) -> HttpResponse:
    """The answer to a resource request.

    Raises:
        StatusError: every refusal.
    """
    verb = _verb(exchange)
    if verb == "watch":
        return _watch(api, views, exchange)
    if exchange.route.subresource in _STREAMED:
        return _unserved(api, exchange)
    media = answers.choose_media(exchange.accept, custom=exchange.kind.custom)
    if verb in ("create", "update", "patch"):
        exchange.warnings.extend(check_kind(exchange.kind, exchange.route.subresource))
    view = _view(views, exchange, many=verb in ("list", "deletecollection"))
    plain_list = verb == "list" and view is None and media == answers.JSON
    answer = _list(api, exchange, to_encode=True) if plain_list else _SERVED[verb](api, exchange)
    body = answer.body
    if view is not None and body.get("kind") != "Status":
        body = view.many(body) if verb in ("list", "deletecollection") else view.one(body)
    warnings = (*answer.warnings, *exchange.warnings)
    return answers.respond(Answer(answer.status, body, warnings, answer.headers), media)


_STREAMED = ("attach", "exec", "log", "portforward", "proxy")


def _unserved(api: Api, exchange: Exchange) -> HttpResponse:
    """Answer for subresources that need a container: logs are empty, the rest is 403."""
    target = exchange.target
    api.get_at(target, "")
    if target.subresource == "log":
        return answers.whole(200, "text/plain", b"", {})
    message = f"{target.subresource} is not served: no containers run in this cluster"
    raise StatusError(403, "Forbidden", message)


_ONLY = {
    "binding": ("create",),
    "eviction": ("create",),
    "token": ("create",),
    "finalize": ("update",),
    "status": ("get", "update", "patch"),
    "resize": ("get", "update", "patch"),
    "scale": ("get", "update", "patch"),
}


def _check_subresource(exchange: Exchange) -> None:
    """404 for an unknown subresource: of a custom kind for the object, else for the path."""
    route, kind = exchange.route, exchange.kind
    known = not route.subresource or route.subresource in kind.subresources
    if not known and kind.custom and not route.deeper and kind.namespaced == bool(route.namespace):
        raise not_found(Subject(kind.group, kind.plural, route.name))
    if route.deeper or not known:
        raise unknown_resource()


def _verb(exchange: Exchange) -> str:
    route, kind = exchange.route, exchange.kind
    verb = route.verb(exchange.method)
    _check_subresource(exchange)
    if kind.namespaced != bool(route.namespace) and (route.name or not kind.namespaced):
        raise unknown_resource()
    allowed = (verb in _SERVED or verb == "watch") and exchange.method != "HEAD"
    if route.subresource:
        allowed = allowed and verb in _ONLY.get(route.subresource, (verb,))
    if not route.subresource:
        allowed = allowed and verb in kind.verbs
        if kind.custom and verb in ("update", "patch") and not route.name:
            raise bad_request("name must be provided")
        if verb in ("update", "patch") and not route.name:
            allowed = False
        named = bool(route.name) and not kind.custom
        if verb == "create" and (named or kind.namespaced != bool(route.namespace)):
            allowed = False
    if not allowed:
        raise not_allowed()
    return verb


def _view(views: Tables, exchange: Exchange, *, many: bool) -> ObjectShape | None:
    return views.view(
        exchange.accept, exchange.kind, exchange.route.version, exchange.query, many=many
    )


def _get(api: Api, exchange: Exchange) -> Answer:
    target = exchange.target
    if target.subresource:
        return Answer(200, api.get(target))
    return Answer(200, api.get_at(target, exchange.query.get("resourceVersion", "")))


def _list(api: Api, exchange: Exchange, *, to_encode: bool = False) -> Answer:
    if "sendInitialEvents" in exchange.query:
        options.refuse_initial_events(exchange)
    chosen = options.list_options(exchange)
    return Answer(200, api.list(exchange.target, chosen, to_encode=to_encode))


def _watch(api: Api, views: Tables, exchange: Exchange) -> HttpResponse:
    answers.choose_media(exchange.accept, watch=True)
    view = _view(views, exchange, many=True)
    watch = api.watch(exchange.target, options.watch_options(exchange))
    response = answers.stream(_lines(watch, view))

    async def close() -> None:
        watch.close()

    response.close = close
    return response


async def _lines(watch: Watch, view: ObjectShape | None) -> AsyncIterator[bytes]:
    async for batch in watch.events():
        for event in batch:
            yield b'{"type":"%s","object":%s}\n' % (event.type.encode(), _shown(event, view))


def _shown(event: Event, view: ObjectShape | None) -> bytes:
    if view is None or event.type == "ERROR":
        return as_answered(event.encoded())
    obj = event.object
    return as_answered(encode(view.bookmark(obj) if event.type == "BOOKMARK" else view.event(obj)))


def _create(api: Api, exchange: Exchange) -> Answer:
    target = exchange.target
    write = options.write_options(exchange, "CreateOptions")
    if target.subresource:
        body = _body(exchange, _POSTED.get(target.subresource, ""), write)
        _check(api, target.subresource, body, write)
        answer = api.post(exchange.actor, target, body, write)
        return Answer(answer.get("code", 201) if answer.get("kind") == "Status" else 201, answer)
    body = _body(exchange, target.kind.kind, write)
    return Answer(201, api.create(exchange.actor, target, body, write))


_SHAPES = {
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
    "scale": ("autoscaling", "v1", "Scale"),
    "delete": ("", "v1", "DeleteOptions"),
}


def _check(api: Api, what: str, body: Object, write: WriteOptions | None = None) -> None:
    """Check a body for a subresource or a deletion: wrong types (400), unknown fields."""
    if what not in _SHAPES:
        return
    other = body.get("kind") not in (None, "", _SHAPES[what][2])
    try:
        unknown = api.decoder.check(*_SHAPES[what], body)
    except StatusError as error:
        if what != "delete":
            raise
        text = error.message.partition("cannot be handled as a DeleteOptions: ")[2]
        raise _bad_options(api, text) from None
    if write is None or other or not unknown or write.field_validation == "Ignore":
        return
    if write.field_validation == "Strict":
        _, version, name = _SHAPES[what]
        text = f'{name} in version "{version}" cannot be handled as a {name}'
        raise bad_request(f"{text}: strict decoding error: {', '.join(unknown)}")
    write.warnings.extend(unknown)


_POSTED = {"binding": "Binding", "eviction": "Eviction", "token": "TokenRequest"}


def _body(exchange: Exchange, expected: str, write: WriteOptions) -> Object:
    repeated: list[str] = []
    body = parse_object(exchange.body, exchange.headers, expected, repeated)
    write.repeated.extend(repeated)
    if exchange.kind.custom and exchange.route.subresource in ("", "status"):
        ignored = write.field_validation == "Ignore"
        check_custom(body, exchange.body or b"", expected, exchange.target.version, ignored)
    return body


def _update(api: Api, exchange: Exchange) -> Answer:
    target = exchange.target
    write = options.write_options(exchange, "UpdateOptions")
    expected = "Scale" if target.subresource == "scale" else target.kind.kind
    body = _body(exchange, expected, write)
    if target.subresource == "scale":
        _check(api, "scale", body, write)
    updated = api.update(exchange.actor, target, body, write)
    return Answer(201 if write.created else 200, updated)


def _patch(api: Api, exchange: Exchange) -> Answer:
    target = exchange.target
    patch_type = _patch_type(exchange, target.kind)
    write = options.write_options(exchange, "PatchOptions")
    if patch_type == "apply":
        body: Any = parse_object(
            exchange.body, {"content-type": "application/yaml"}, target.kind.kind, []
        )
    else:
        api.get_at(replace(target, subresource=""), "")
        body = parse_patch(exchange.body, patch_type)
    patched = api.patch(exchange.actor, target, patch_type, body, write)
    return Answer(201 if write.created else 200, patched)


def _patch_type(exchange: Exchange, kind: Kind) -> str:
    media = media_type(exchange.headers)
    patch_type = _PATCHES.get(media)
    if patch_type is None and not kind.custom:
        message = "415: Unsupported Media Type"
        raise StatusError(415, "UnsupportedMediaType", message, {})
    if patch_type is None or (patch_type == "strategic" and kind.custom):
        message = (
            "the body of the request was in an unknown format - accepted media types include: "
            f"{_CUSTOM_PATCHES}"
        )
        raise StatusError(415, "UnsupportedMediaType", message)
    return patch_type


def _delete(api: Api, exchange: Exchange) -> Answer:
    target = exchange.target
    chosen = options.delete_options(exchange, _delete_body(api, exchange))
    return Answer(200, api.delete(exchange.actor, target, chosen))


def _delete_body(api: Api, exchange: Exchange) -> Object:
    if not exchange.body:
        return {}
    body = parse_object(exchange.body, exchange.headers, "DeleteOptions", [])
    _check_options_kind(api, body)
    _check(api, "delete", body)
    return body


def _check_options_kind(api: Api, body: Object) -> None:
    """Refuse a body of another kind."""
    kind, version = body.get("kind") or "DeleteOptions", body.get("apiVersion") or "v1"
    if kind == "DeleteOptions":
        return
    text = f'no kind "{kind}" is registered for version "{version}" in scheme'
    raise _bad_options(api, f'{text} "pkg/runtime/scheme.go:111"')


def _bad_options(api: Api, text: str) -> StatusError:
    """The refusal of options that cannot be read; before 1.35 that is a server error."""
    return bad_request(text) if api.features.version >= (1, 35) else StatusError(500, "", text)


def _delete_collection(api: Api, exchange: Exchange) -> Answer:
    target = exchange.target
    if target.kind.namespaced and not target.namespace:
        raise not_allowed()
    chosen = options.delete_options(exchange, _delete_body(api, exchange))
    listed = options.list_options(exchange)
    return Answer(200, api.delete_collection(exchange.actor, target, chosen, listed))


_SERVED = {
    "get": _get,
    "list": _list,
    "create": _create,
    "update": _update,
    "patch": _patch,
    "delete": _delete,
    "deletecollection": _delete_collection,
}
