"""ValidatingAdmissionPolicies: writes are refused, or warned of, by expressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kube_in_process.admission.expressions import Failed, Names, conditions_hold, names_of
from kube_in_process.admission.params import Applied, applied, name_of
from kube_in_process.admission.request import AdmissionRequest, AdmissionServer, in_version
from kube_in_process.errors import StatusError
from kube_in_process.objects import Object

POLICIES = "validatingadmissionpolicies"
_CODES = {
    "Unauthorized": 401,
    "Forbidden": 403,
    "RequestEntityTooLarge": 413,
    "Invalid": 422,
}


@dataclass(frozen=True, slots=True)
class _Refusal:
    message: str
    reason: str = "Invalid"


def validate(server: AdmissionServer, request: AdmissionRequest, warnings: list[str]) -> None:
    """Ask the policies.

    Raises:
        StatusError: the first refusal of a binding that denies. All policies warn before.
    """
    denied: StatusError | None = None
    for policy in applied(server, POLICIES, request):
        actions = (
            ("Deny",) if policy.binding is None else policy.binding["spec"]["validationActions"]
        )
        for refusal in _refusals(server, policy, request):
            if "Warn" in actions:
                warnings.append(f"Validation failed for {_named(policy)}: {refusal.message}")
            if "Deny" in actions and denied is None:
                denied = _status(policy, request, refusal)
    if denied is not None:
        raise denied


def _named(applied_policy: Applied) -> str:
    policy = f"ValidatingAdmissionPolicy '{name_of(applied_policy.policy)}'"
    return (
        policy
        if applied_policy.binding is None
        else f"{policy} with binding '{name_of(applied_policy.binding)}'"
    )


def _status(policy: Applied, request: AdmissionRequest, refusal: _Refusal) -> StatusError:
    subject = request.subject
    text = f"{_named(policy)} denied request: {refusal.message}"
    message = f'{subject.resource} "{subject.name}" is forbidden: {text}'
    details = subject.details(causes=[{"message": text}])
    return StatusError(_CODES[refusal.reason], refusal.reason, message, details)


def _refusals(
    server: AdmissionServer, policy: Applied, request: AdmissionRequest
) -> Iterator[_Refusal]:
    """What a policy refuses. A failure counts as a refusal, unless the policy ignores it."""
    if policy.problem:
        yield from () if policy.ignores_failures else (_Refusal(policy.problem),)
        return
    shown = in_version(server, request, policy.version)
    names = names_of(server, shown, policy.params, policy.spec.get("variables") or ())
    try:
        if not conditions_hold(names, policy.spec.get("matchConditions") or ()):
            return
    except Failed as error:
        yield from () if policy.ignores_failures else (_Refusal(str(error)),)
        return
    for validation in policy.spec.get("validations") or ():
        try:
            holds = names.value(validation["expression"])
        except Failed as error:
            if not policy.ignores_failures:
                yield _Refusal(str(error))
            continue
        if holds is not True:
            yield _Refusal(_message(validation, names), validation.get("reason") or "Invalid")


def _message(validation: Object, names: Names) -> str:
    """The text of a validation that failed. A message expression must give one line of text."""
    plain = str(validation.get("message") or f"failed expression: {validation['expression']}")
    expression = validation.get("messageExpression")
    if not expression:
        return plain
    try:
        text: Any = names.value(expression)
    except Failed:
        return plain
    usable = isinstance(text, str) and text.strip() and "\n" not in text
    return text.strip() if usable else plain
