"""Questions to the API server about what a user may do."""

from __future__ import annotations

from claimctl.wire.base import Wire
from claimctl.wire.resources import Resource


class _Status(Wire, frozen=True, kw_only=True):
    allowed: bool = False


class AccessReview(Wire, frozen=True, kw_only=True):
    """The answer to a question about one right."""

    status: _Status = _Status()


def _reviews(plural: str, kind: str) -> Resource[AccessReview]:
    group = "authorization.k8s.io"
    return Resource(group, "v1", plural, kind, AccessReview, namespaced=False)


OWN_ACCESS = _reviews("selfsubjectaccessreviews", "SelfSubjectAccessReview")
ACCESS_OF_OTHERS = _reviews("subjectaccessreviews", "SubjectAccessReview")
