"""What people state about pods that vanished: that they do not run any more.

The annotation ``claimctl.io/ended-pods`` of a ClaimReservation has statements, separated by commas:

- ``UID`` is about the one pod of this UID.
- ``pod/NAME@VERSION`` is about the pods of this name or UID that were gone by this version of the
  cluster, and ``pod/*@VERSION`` about all pods of the claim.
- ``node/NAME@VERSION`` is about the pods that vanished from this node by this version.

The version is that of the moment of the statement. So no statement is about a pod that vanishes
later, also not for a controller that starts later. A pod of which no version is known is only named
by its UID.

Who may write a ClaimReservation may write the annotation, and with it end the wait for pods of the
own namespace. The same user may set ``forceDeletedPodGraceSeconds`` to 0, which does as much.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from claimctl.reservation.users.several import is_several
from claimctl.wire.meta import reaches
from claimctl.wire.reservations import ForceDeletedPod

ALL_PODS = "*"
_SINCE = re.compile(r"((?:pod|node)/[^@,]+)@([0-9]{1,20})")


def about_pod(name: str) -> str:
    """The subject of a statement about the pods of this name or UID (``ALL_PODS``: all)."""
    return f"pod/{name}"


def about_node(name: str) -> str:
    """The subject of a statement about the pods that vanished from this node."""
    return f"node/{name}"


def concerns(subject: str, ghost: ForceDeletedPod) -> bool:
    """Whether a statement with this subject is about the ghost."""
    names = {about_pod(name) for name in (ghost.uid, ghost.name, ALL_PODS)}
    return subject in names | ({about_node(ghost.node_name)} if ghost.node_name else set())


def with_statement(value: str, subject: str, version: str, known: Iterable[ForceDeletedPod]) -> str:
    """The annotation with one more statement.

    Args:
        version: that of the cluster now.
        known: the ghosts of the subject that a status names.
    """
    kept = {entry for entry in value.split(",") if entry and entry.split("@")[0] != subject}
    kept |= {ghost.uid for ghost in known if not is_several(ghost)}
    return ",".join(sorted({*kept, f"{subject}@{version}"}))


class Statements:
    """The statements in the annotations of a claim's reservations."""

    def __init__(self, annotations: Iterable[str]) -> None:
        self._uids, self._versions = set[str](), dict[str, str]()
        for entry in (entry for value in annotations for entry in value.split(",") if entry):
            if (form := _SINCE.fullmatch(entry)) is None:
                self._uids.add(entry)
            elif reaches(form[2], self._versions.get(form[1], "0")):
                self._versions[form[1]] = form[2]

    def tell_of(self, ghost: ForceDeletedPod, gone_by: str) -> bool:
        """Whether they state that the ghost has ended.

        Args:
            gone_by: a version of the cluster at which the ghost's pods were gone; '' if unknown.
        """
        if ghost.uid in self._uids and not is_several(ghost):
            return True
        stated = (at for subject, at in self._versions.items() if concerns(subject, ghost))
        return bool(gone_by) and any(reaches(version, gone_by) for version in stated)
