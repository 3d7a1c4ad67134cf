"""Configurations of admission webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from kube_in_process import errors
from kube_in_process.errors import FieldError, invalid_value, not_supported, required
from kube_in_process.kinds.emulation import refusal
from kube_in_process.kinds.strategy import Strategy, WriteContext
from kube_in_process.kinds.validation.expressions import OBJECTS, Scope
from kube_in_process.kinds.validation.match_resources import (
    FAILURE_POLICIES,
    choice,
    condition_errors,
    default_match,
    rule_errors,
    selector_errors,
)
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.text import names

_EFFECTS = ("None", "NoneOnDryRun")
_VERSIONS = ("v1", "v1beta1")
_LONGEST = 30


class WebhookStrategy(Strategy):
    """``mutating``: the webhooks have a reinvocation policy."""

    def __init__(self, *, mutating: bool) -> None:
        self._mutating = mutating

    def default(self, obj: Object, features: Features) -> None:
        for hook in obj.get("webhooks") or ():
            hook.setdefault("failurePolicy", "Fail")
            default_match(hook, ("rules",))
            hook.setdefault("timeoutSeconds", 10)
            if self._mutating:
                hook.setdefault("reinvocationPolicy", "Never")
            service = hook.get("clientConfig", {}).get("service")
            if service is not None:
                service.setdefault("port", 443)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        field_errors: list[FieldError] = []
        seen: set[str] = set()
        for index, hook in enumerate(obj.get("webhooks") or ()):
            path, name = f"webhooks[{index}]", hook.get("name") or ""
            field_errors += _errors(hook, path)
            if name and name in seen:
                field_errors.append(errors.duplicate(f"{path}.name", name))
            seen.add(name)
        return field_errors

    def admit(self, obj: Object, context: WriteContext) -> None:
        self._refuse_services(obj, context)

    def admit_update(self, new: Object, old: Object, context: WriteContext) -> None:
        self._refuse_services(new, context)

    def _refuse_services(self, obj: Object, context: WriteContext) -> None:
        """No network leads to Services here, so that no such webhook could be called."""
        for index, hook in enumerate(obj.get("webhooks") or ()):
            if (hook.get("clientConfig") or {}).get("service") is not None:
                where = f"{context.kind.resource}: webhooks[{index}].clientConfig.service"
                raise refusal("a webhook behind a Service (give it a url)", where)


def _errors(hook: Object, path: str) -> Iterator[FieldError]:
    yield from _name(hook.get("name") or "", f"{path}.name")
    for index, rule in enumerate(hook.get("rules") or ()):
        yield from rule_errors(rule, f"{path}.rules[{index}]")
    yield from choice(hook, "failurePolicy", FAILURE_POLICIES, path)
    yield from choice(hook, "matchPolicy", ("Equivalent", "Exact"), path)
    effects = hook.get("sideEffects")
    if not effects:
        yield required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun")
    elif effects not in _EFFECTS:
        yield not_supported(f"{path}.sideEffects", effects, _EFFECTS)
    seconds = hook.get("timeoutSeconds", 10)
    if not 1 <= seconds <= _LONGEST:
        text = "the timeout value must be between 1 and 30 seconds"
        yield invalid_value(f"{path}.timeoutSeconds", seconds, text)
    yield from selector_errors(hook, path)
    yield from _client(hook.get("clientConfig") or {}, f"{path}.clientConfig")
    yield from _versions(hook.get("admissionReviewVersions") or [], path)
    conditions = hook.get("matchConditions") or ()
    yield from condition_errors(conditions, f"{path}.matchConditions", Scope(OBJECTS))
    yield from choice(hook, "reinvocationPolicy", ("IfNeeded", "Never"), path)


def _name(name: str, path: str) -> Iterator[FieldError]:
    if not name:
        yield required(path)
        return
    wrong = errors.invalid_name(path, name, names.subdomain)
    yield from wrong
    if not wrong and len(name.split(".")) < 3:
        text = "should be a domain with at least three segments separated by dots"
        yield invalid_value(path, name, text)


def _client(client: Object, path: str) -> Iterator[FieldError]:
    url = client.get("url")
    if (url is None) == (client.get("service") is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url(url, f"{path}.url")
    else:
        yield from _service(client["service"], f"{path}.service")


def _url(url: str, path: str) -> Iterator[FieldError]:
    form = "; desired format: https://host[/path]"
    try:
        parts = urlsplit(url)
    except ValueError as error:
        yield required(path, f"url must be a valid URL: {error}{form}")
        return
    if parts.scheme != "https":
        text = f"'https' is the only allowed URL scheme{form}"
        yield invalid_value(path, parts.scheme, text)
    if not parts.netloc:
        yield invalid_value(path, "", f"host must be specified{form}")
    if parts.username is not None:
        text = "user information is not permitted in the URL"
        yield invalid_value(path, parts.netloc.rpartition("@")[0], text)
    if parts.fragment:
        yield invalid_value(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        text = "query parameters are not permitted in the URL"
        yield invalid_value(path, parts.query, text)


def _service(service: Object, path: str) -> Iterator[FieldError]:
    for key in ("name", "namespace"):
        if not service.get(key):
            yield required(f"{path}.{key}", f"service {key} is required")
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        text = "port is not valid: must be between 1 and 65535, inclusive"
        yield invalid_value(f"{path}.port", port, text)


def _versions(versions: list[str], path: str) -> Iterator[FieldError]:
    where = f"{path}.admissionReviewVersions"
    if not versions:
        yield required(where, "must specify one of v1, v1beta1")
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield invalid_value(f"{where}[{index}]", version, "duplicate version")
    if not set(versions) & set(_VERSIONS):
        yield invalid_value(where, versions, "must include at least one of v1, v1beta1")
