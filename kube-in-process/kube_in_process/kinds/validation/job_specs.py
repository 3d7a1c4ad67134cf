"""Validation of the spec of a Job, or of a CronJob's template."""

from __future__ import annotations

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.validation.amounts import not_negative
from kube_in_process.kinds.validation.templates import pod_template
from kube_in_process.objects import Object

_MODES = ("NonIndexed", "Indexed")
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_POLICIES = ("OnFailure", "Never")
_NUMBERS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_INDEXED_ONLY = "requires indexed completion mode"


def job_errors(spec: Object, path: str) -> list[FieldError]:
    field_errors = not_negative(spec, _NUMBERS, path)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        where = f"{path}.backoffLimitPerIndex"
        field_errors.append(errors.required(where, "when maxFailedIndexes is specified"))
    field_errors += _mode(spec, path)
    if spec.get("podFailurePolicy") is not None:
        field_errors += _failure_policy(spec["podFailurePolicy"], f"{path}.podFailurePolicy")
    field_errors += _replacement(spec, f"{path}.podReplacementPolicy")
    field_errors += pod_template(spec["template"], f"{path}.template")
    return [*field_errors, *_restarts(spec, f"{path}.template.spec.restartPolicy")]


def _mode(spec: Object, path: str) -> list[FieldError]:
    mode, completions = spec.get("completionMode"), spec.get("completions")
    failed = spec.get("maxFailedIndexes")
    field_errors: list[FieldError] = []
    if mode not in (*_MODES, None):
        field_errors.append(errors.not_supported(f"{path}.completionMode", mode, _MODES))
    if mode == "Indexed":
        if completions is None:
            text = "when completion mode is Indexed"
            field_errors.append(errors.required(f"{path}.completions", text))
        elif failed is not None and failed > completions:
            text = "must be less than or equal to completions"
            field_errors.append(errors.invalid_value(f"{path}.maxFailedIndexes", failed, text))
        return field_errors
    if mode == "NonIndexed":
        for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(key) is not None:
                field_errors.append(errors.invalid_value(f"{path}.{key}", spec[key], _INDEXED_ONLY))
    return field_errors


def _failure_policy(policy: Object, path: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    for index, rule in enumerate(policy.get("rules") or []):
        below, action = f"{path}.rules[{index}]", rule.get("action") or ""
        field_errors += _choice(action, _ACTIONS, f"{below}.action")
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
        if codes is not None:
            field_errors += _exit_codes(codes, f"{below}.onExitCodes")
        if codes is None and not conditions:
            text = "specifying one of OnExitCodes and OnPodConditions is required"
            field_errors.append(FieldError("FieldValueInvalid", below, f"Invalid value: {text}"))
    return field_errors


def _choice(value: str, supported: tuple[str, ...], path: str) -> list[FieldError]:
    if not value:
        listed = " ".join(f'"{choice}"' for choice in supported)
        return [errors.required(path, f"valid values: [{listed}]")]
    return [] if value in supported else [errors.not_supported(path, value, supported)]


def _exit_codes(codes: Object, path: str) -> list[FieldError]:
    operator, values = codes.get("operator") or "", codes.get("values")
    field_errors = _choice(operator, _OPERATORS, f"{path}.operator")
    where = f"{path}.values"
    if not values:
        return [
            *field_errors,
            errors.invalid_value(where, values, "at least one value is required"),
        ]
    if values != sorted(values):
        field_errors.append(errors.invalid_value(where, values, "must be ordered"))
    for index, value in enumerate(values):
        if value in values[:index]:
            field_errors.append(errors.duplicate(f"{where}[{index}]", value))
        if value == 0 and operator == "In":
            text = "must not be 0 for the In operator"
            field_errors.append(errors.invalid_value(f"{where}[{index}]", 0, text))
    return field_errors


def _replacement(spec: Object, path: str) -> list[FieldError]:
    policy = spec.get("podReplacementPolicy")
    supported = ("Failed",) if spec.get("podFailurePolicy") else ("Failed", "TerminatingOrFailed")
    if policy is None or policy in supported:
        return []
    return [errors.not_supported(path, policy, supported)]


def _restarts(spec: Object, path: str) -> list[FieldError]:
    policy = spec["template"]["spec"].get("restartPolicy") or ""
    field_errors: list[FieldError] = []
    if policy == "Always":
        valid = ", ".join(f'"{policy}"' for policy in _POLICIES)
        field_errors.append(errors.required(path, f"valid values: {valid}"))
    elif policy not in _POLICIES:
        field_errors.append(errors.not_supported(path, policy, _POLICIES))
    if spec.get("podFailurePolicy") is not None and policy == "OnFailure":
        text = 'only "Never" is supported when podFailurePolicy is specified'
        field_errors.append(errors.invalid_value(path, policy, text))
    return field_errors
