"""Continue tokens: the position and version at which a list continues."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass

from kube_in_process.errors import bad_request

_ENCODED_VERSION = "meta.k8s.io/v1"
_CURRENT = -1


@dataclass(frozen=True, slots=True)
class Continue:
    """The list continues after ``key`` at ``revision``; None means the current one."""

    revision: int | None
    key: str

    def encode(self) -> str:
        revision = _CURRENT if self.revision is None else self.revision
        content = {"v": _ENCODED_VERSION, "rv": revision, "start": f"{self.key}\0"}
        data = json.dumps(content, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_continue(token: str) -> Continue:
    """Decode the token of an earlier answer.

    Raises:
        StatusError: 400, the token is not one of this server.
    """
    prefix = "invalid continue token: continue key is not valid:"
    try:
        data = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except (binascii.Error, ValueError):
        raise bad_request(f"{prefix} illegal base64 data at input byte 0") from None
    try:
        content = json.loads(data)
    except ValueError:
        first = data[:1].decode("latin-1")
        shown = first if first.isprintable() else f"\\u{ord(first):04x}"
        detail = f"invalid character '{shown}' looking for beginning of value"
        raise bad_request(f"{prefix} {detail}") from None
    if not isinstance(content, dict) or content.get("v") != _ENCODED_VERSION:
        version = content.get("v", "") if isinstance(content, dict) else ""
        detail = f"server does not recognize this encoded version {version}"
        raise bad_request(f"{prefix} {detail}")
    revision = int(content["rv"])
    return Continue(None if revision == _CURRENT else revision, content["start"].rstrip("\0"))
