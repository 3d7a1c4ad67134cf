"""Policies as users of the descheduler have them, in ``policies``: accepted, or one line for each
part that claimctl lacks.

They are written for this test, by what the descheduler documents: every plugin with every arg, and
every form of the file. The first lines say what is expected:

``lacks``: plugins; each that claimctl does not have is one line, and ``--skip-unsupported`` leaves
it out. ``refuses``: the same for other parts, by their lines. ``wrong``: what no flag lets pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from claimctl_reschedule.policyfile.problems import FLAG, PolicyError
from claimctl_reschedule.policyfile.reading import read
from claimctl_reschedule.policyfile.v1alpha2 import ARGS

FILES = sorted(Path(__file__).with_name("policies").glob("*.yaml"))


@dataclass(frozen=True, slots=True)
class Expected:
    """The beginnings of the lines, or the plugins that they name."""

    plugins: tuple[str, ...]
    parts: tuple[str, ...]
    faults: tuple[str, ...]


def expected(path: Path) -> Expected:
    told: dict[str, list[str]] = {"lacks": [], "refuses": [], "wrong": []}
    for line in path.read_text(encoding="utf-8").splitlines():
        word, _, rest = line.removeprefix("# ").partition(": ")
        if line.startswith("# ") and word in told:
            told[word] += [rest] if word != "lacks" else rest.split(", ")
    plugins = tuple(name for name in told["lacks"] if name not in ARGS)
    return Expected(plugins, tuple(told["refuses"]), tuple(told["wrong"]))


def is_told(beginning: str, lines: tuple[str, ...]) -> bool:
    return sum(line.startswith(beginning) for line in lines) == 1


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_policy_is_accepted_or_has_a_line_for_each_part(path: Path) -> None:
    wanted = expected(path)
    count = len(wanted.plugins) + len(wanted.parts)
    if not (count or wanted.faults):
        assert read(path).skipped == ()
        return
    with pytest.raises(PolicyError) as raised:
        read(path)
    lines = raised.value.problems
    assert len(lines) == count + len(wanted.faults)
    assert not any("\n" in line for line in lines)
    assert all(is_told(beginning, lines) for beginning in (*wanted.parts, *wanted.faults))
    for name in wanted.plugins:
        (line,) = [line for line in lines if f": claimctl has no plugin {name} (" in line]
        assert line.endswith(f"({FLAG} leaves it out)")
    if not wanted.faults:
        skipped = read(path, skip_unsupported=True).skipped
        assert skipped == tuple(line.removesuffix(f" ({FLAG} leaves it out)") for line in lines)


def test_every_plugin_of_the_descheduler_is_in_a_file() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in FILES)
    assert len(FILES) > 51
    assert [name for name in PLUGINS if text.count(f"- name: {name}\n") < 1] == []


PLUGINS = (
    *("DefaultEvictor", "RemoveDuplicates", "LowNodeUtilization", "HighNodeUtilization"),
    *("RemovePodsViolatingInterPodAntiAffinity", "RemovePodsViolatingNodeAffinity"),
    *("RemovePodsViolatingNodeTaints", "RemovePodsViolatingTopologySpreadConstraint"),
    *("RemovePodsHavingTooManyRestarts", "PodLifeTime", "RemoveFailedPods"),
)
