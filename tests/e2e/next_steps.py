"""Run the commands that claimctl tells its reader to run, as the reader would copy them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from claimctl_demo.story.stage import Stage
from tests.e2e.commands import CommandAnswer, ServedCluster
from tests.e2e.runbooks import run

_COMMAND = re.compile(r"[`(:] ?((?:claimctl|kubectl) [^`()\n]+)(?:[`)]|$)", re.MULTILINE)
_GIVES_UP = re.compile(r"\b(free|delete|scale|suspend)\b", re.IGNORECASE)
"""What the words before a command say if it ends pods or gives devices back."""
_FINDINGS = 3
_GOOD_CODES = {"claimctl": {0, _FINDINGS}, "kubectl": {0}}


@dataclass(frozen=True, slots=True)
class NextStep:
    command: str
    gives_up: bool
    """Whether its words say that pods end or devices are given back."""


def steps(text: str) -> Iterator[NextStep]:
    """The printed commands, in the order of the text."""
    for line in text.splitlines():
        for match in _COMMAND.finditer(line):
            words = line[: match.start()] + line[match.end() :]
            yield NextStep(match.group(1).strip(), _GIVES_UP.search(words) is not None)


@dataclass(frozen=True, slots=True)
class Belongings:
    """What a command must not take away: devices of claims, and pods that run, as ns/name."""

    claims: frozenset[str]
    pods: frozenset[str]

    @classmethod
    def of(cls, stage: Stage) -> Belongings:
        stage.look()
        claims, world = stage.world.claims, stage.world
        places = {place for place, _ in claims}
        running = (
            pod
            for place in places
            for pod in world.pods_in(place)
            if pod.status.phase == "Running" and not pod.metadata.deleting
        )
        return cls(
            frozenset("/".join(key) for key, claim in claims.items() if claim.status.allocation),
            frozenset(f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in running),
        )

    def lost_in(self, now: Belongings) -> set[str]:
        return set((self.claims - now.claims) | (self.pods - now.pods))


async def follow(
    served: ServedCluster, look: str, instead: tuple[str, ...] = ()
) -> tuple[list[str], str]:
    """Run a command, then every command that it tells its reader to run, and so on.

    Every one must end well. Only a command whose words say so may take devices or pods away, and
    none from the namespace ``prod``.

    Args:
        instead: commands that are left out.

    Returns:
        the commands that were printed and run, and what the first command printed.
    """
    first = await _run(served, look)
    waiting, played = list(steps(first.out + first.err)), list[str]()
    while waiting:
        step = waiting.pop(0)
        if step.command in (*played, *instead, look):
            continue
        before = Belongings.of(served.stage)
        answer = await _run(served, step.command)
        await served.stage.scene.caught_up()
        lost = before.lost_in(Belongings.of(served.stage))
        if not step.gives_up:
            assert lost == set(), f"{step.command} takes away: {lost}"
        assert not any(name.startswith("prod/") for name in lost), f"{step.command}: {lost}"
        played.append(step.command)
        waiting = [*steps(answer.out + answer.err), *waiting]
    return played, first.out + first.err


async def _run(served: ServedCluster, command: str) -> CommandAnswer:
    answer = await run(command, served.kubeconfig)
    codes = _GOOD_CODES[command.split()[0]]
    assert answer.code in codes, f"{command}: {answer}"
    assert "Traceback" not in answer.err, answer
    return answer
