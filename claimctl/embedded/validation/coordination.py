"""Leases: times with six digits, counters that are not negative."""

from __future__ import annotations

import re
from typing import Any

from claimctl.embedded import errors
from claimctl.embedded.errors import FieldError
from claimctl.embedded.kinds import Kind
from claimctl.embedded.strategy import Context, Strategy

Object = dict[str, Any]
_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)\Z")
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"


def check_micro_time(kind: Kind, version: str, value: Any) -> None:
    """Raises StatusError 400 for a metav1.MicroTime that Go would not parse."""
    if value is None or (isinstance(value, str) and _MICRO_TIME.match(value)):
        return
    text = str(value)
    date = _DATE.match(text)
    if date is None:
        why = f'cannot parse "{text}" as "2006"'
    else:
        rest = text[date.end() :]
        digits = re.match(r"\.\d{6}(\d+)", rest)
        why = (
            f'cannot parse "{digits.group(1)}{rest[digits.end() :]}" as "Z07:00"'
            if digits
            else f'cannot parse "{rest}" as ".000000"'
        )
    cannot = f'{kind.kind} in version "{version}" cannot be handled as a {kind.kind}'
    raise errors.bad_request(f'{cannot}: parsing time "{text}" as "{_LAYOUT}": {why}')


class LeaseStrategy(Strategy):
    def inward(self, obj: Object, kind: Kind, version: str) -> Object:
        for key in ("acquireTime", "renewTime"):
            check_micro_time(kind, version or kind.version, (obj.get("spec") or {}).get(key))
        return obj

    def validate(self, obj: Object, context: Context) -> list[FieldError]:
        spec = obj.setdefault("spec", {})
        found: list[FieldError] = []
        duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        if duration is not None and duration <= 0:
            path = "spec.leaseDurationSeconds"
            found.append(errors.invalid_value(path, duration, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            text = "must be greater than or equal to 0"
            found.append(errors.invalid_value("spec.leaseTransitions", transitions, text))
        return found
