"""``python -m labs again-real FILE ...``: judges the history of a schedule again.

With ``KEEP`` a run leaves a file for each schedule with a finding. After a correction of the judge,
this command shows whether the accusation still holds. It does not judge leaks and stuck workloads:
they were seen on the cluster itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from kube_in_process.storage.store import Revision

from claimctl_demo.real_servers.pod_worker import Finding
from labs.torture_real.judge import Verdict, judge


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


def judged(path: Path) -> Verdict:
    """The verdict of the present judge on a record."""
    record = msgspec.json.decode(path.read_bytes(), type=Record)
    verdict = Verdict(record.name)
    judge(verdict, record.history, record.findings, whole=record.whole)
    return verdict


def main(arguments: Sequence[str]) -> int:
    verdicts = [judged(Path(argument)) for argument in arguments]
    for verdict in verdicts:
        print(f"{verdict.name}: {'nothing found' if verdict.good else 'stands'}")
    return 0 if all(verdict.good for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
