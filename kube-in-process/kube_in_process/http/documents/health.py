"""The health of the server: ``/livez``, ``/readyz`` and ``/healthz``, and the parts of each.

``health.json`` has the names of the checks of v1.36. A server in this process that answers at all
is well, so every check passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from kube_in_process.text.data import table

PATHS = ("/healthz", "/livez", "/readyz")


def health(path: str, query: Sequence[tuple[str, str]]) -> str | None:
    """The text at a path: ``ok``, or all checks for ``?verbose``; None for an unknown path."""
    _, name, *rest = path.split("/")
    checks = _checks()["readyz" if name == "readyz" else "livez"]
    if rest:
        return "ok" if "/".join(rest) in checks else None
    if "verbose" not in dict(query):
        return "ok"
    excluded = {value for key, value in query if key == "exclude"}
    lines = [f"[+]{check} {'excluded: ' if check in excluded else ''}ok\n" for check in checks]
    return f"{''.join(lines)}{name} check passed\n"


@lru_cache(maxsize=1)
def _checks() -> dict[str, list[str]]:
    return table(__package__, "health.json", dict[str, list[str]])
