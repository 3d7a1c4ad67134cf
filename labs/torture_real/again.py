"""Judges the histories of schedules again.

With ``--keep`` a run of torture-real leaves a file for each schedule with a finding. After a
correction of the judge this shows whether the accusation still holds. Leaks and stuck workloads
are not judged: they were seen on the cluster itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from kube_in_process.real.flags import Parser
from kube_in_process.real.servers.pod_worker import Finding
from kube_in_process.storage.store import Revision

from labs.torture_real.judge import RealVerdict, judge


@dataclass(frozen=True, slots=True)
class Record:
    """The input of the judge for one schedule."""

    name: str
    whole: bool
    history: list[Revision]
    findings: list[Finding]


def keep(
    folder: Path, name: str, history: list[Revision], findings: Iterable[Finding], *, whole: bool
) -> Path:
    """Write a record into the folder; returns its file.

    Args:
        whole: whether the schedule has come to its end.
    """
    path = folder / f"{name}.history.json"
    path.write_bytes(msgspec.json.encode(Record(name, whole, history, list(findings))))
    return path


def judged(path: Path) -> RealVerdict:
    """The verdict of the present judge on a record."""
    record = msgspec.json.decode(path.read_bytes(), type=Record)
    verdict = RealVerdict(record.name)
    judge(verdict, record.history, record.findings, whole=record.whole)
    return verdict


def main(arguments: Sequence[str]) -> int:
    parser = Parser("labs torture-real-again", __doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    verdicts = [judged(file) for file in parser.parse_args(arguments).files]
    for verdict in verdicts:
        print(f"{verdict.name}: {'nothing found' if verdict.good else 'stands'}")
    return 0 if all(verdict.good for verdict in verdicts) else 1
