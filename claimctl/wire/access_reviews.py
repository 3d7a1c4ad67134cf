"""Questions to the API server about what a user may do."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from claimctl.wire.base import Wire
from claimctl.wire.resources import Resource, kind_of


@dataclass(frozen=True, slots=True)
class Right:
    verb: str
    group: str
    resource: str
    subresource: str = ""

    def __str__(self) -> str:
        name = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return f"{self.verb} {name}" + (f".{self.group}" if self.group else "")

    def attributes(self, namespace: str = "") -> dict[str, str]:
        """The ``resourceAttributes`` of a review; without a namespace, of the whole cluster."""
        given = {**asdict(self), "namespace": namespace}
        return {key: value for key, value in given.items() if value}


class _Status(Wire, frozen=True, kw_only=True):
    allowed: bool = False


class AccessReview(Wire, frozen=True, kw_only=True):
    """The answer to a question about one right."""

    status: _Status = _Status()


_NAMES = "selfsubjectaccessreviews", "SelfSubjectAccessReview"
OWN_ACCESS = Resource("authorization.k8s.io", "v1", *_NAMES, AccessReview, namespaced=False)


class _UserInfo(Wire, frozen=True, kw_only=True):
    username: str = ""


class _IdentityStatus(Wire, frozen=True, kw_only=True):
    user_info: _UserInfo = _UserInfo()


class SelfSubjectReview(Wire, frozen=True, kw_only=True):
    """The answer to the question who the caller is."""

    status: _IdentityStatus = _IdentityStatus()


OWN_IDENTITY = kind_of("authentication.k8s.io/v1", SelfSubjectReview, namespaced=False)
