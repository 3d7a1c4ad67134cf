"""What other distributions bring to claimctl, by entry points of the group ``claimctl.extensions``.

Such an entry point names an ``Extension``. If it is not installed, its commands and its checks are
absent, and nothing else. An extension imports its modules when it is asked, so that other commands
do not start more slowly.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from claimctl.cli.errors import UsageError

if TYPE_CHECKING:  # `claimctl --help` loads none of them
    from claimctl.kube.codec import Listing
    from claimctl.wire.pods import Pod
    from claimctl.wire.resources import Resource

T = TypeVar("T")
Reason = tuple[str, str]
"""A word for programs, and what it means here."""


class Lists(Protocol):
    """Lists objects for checks of ``claimctl doctor``. Without the right to it there are none, and
    doctor says of these checks that they could not be made."""

    def __call__(self, resource: Resource[T], *checks: str) -> Awaitable[Listing[T]]: ...


@dataclass(frozen=True, slots=True)
class CheckProblem:
    """What a check found; ``object`` is the name of a node, or kind/name in the namespace."""

    check: str
    message: str
    namespace: str = ""
    object: str = ""


@dataclass(frozen=True, slots=True)
class PodWords:
    """What ``claimctl explain`` says of a pod beside its own words.

    Attributes:
        waits: why the pod waits for a node, if there is nothing else to say.
        beside: what to say below the words of the scheduler.
        advice: what to do, by the word of a reason.
    """

    waits: Reason | None = None
    beside: tuple[Reason, ...] = ()
    advice: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReasonsOfExtension:
    """What ``claimctl explain reason/NAME`` says about the reasons of an extension.

    Attributes:
        topic: which question they answer.
        remedy: what to do about each.
        meanings: by name, a sentence.
    """

    topic: str
    remedy: str
    meanings: Mapping[str, str]


class Extension:
    """The base class of extensions. Each overrides what it brings."""

    commands: ClassVar[Mapping[str, str]] = {}
    """By name, the modules with the function ``command`` and its ``EXAMPLES``. The first word of a
    command is the name of the entry point."""
    documents: tuple[str, ...] = ()
    """The modules with the documents that its commands print as JSON."""
    checks: ClassVar[Mapping[str, str]] = {}
    """The checks of ``claimctl doctor``, and what it says about each without a problem."""

    async def examine(self, lists: Lists, now: datetime) -> Sequence[CheckProblem]:
        """The problems that the checks find, in the cluster or in one namespace of it."""
        return ()

    def about_pod(self, pod: Pod) -> PodWords:
        """What to say about a pod; a ``wire.traces.WholePod`` if it was read alone."""
        return PodWords()

    def reasons(self) -> ReasonsOfExtension | None:
        """Its reasons; None if it has none."""
        return None

    def check_policy(self, path: Path) -> None:
        """Check the file of ``claimctl install --reschedule``; UsageError if it is no policy."""


@cache
def extensions() -> Mapping[str, Extension]:
    """The extensions that are installed, by their names."""
    from importlib.metadata import entry_points

    entries = sorted(entry_points(group="claimctl.extensions"), key=lambda entry: entry.name)
    return {entry.name: entry.load() for entry in entries}


def required(name: str) -> Extension:
    """The extension of this name. UsageError if it is not installed."""
    if name not in extensions():
        needs = "./kube-in-process ./claimctl-reschedule " if name == "demo" else ""
        folders = f"{needs}./claimctl-{name}"
        raise UsageError(
            f"claimctl {name} is not installed: `pip install {folders}` in a clone of claimctl, "
            f"else pip install the wheel of claimctl-{name}, which is what claimctl[{name}] asks "
            "for"
        )
    return extensions()[name]


def about_pod(pod: Pod) -> PodWords:
    """What all extensions say about a pod."""
    every = [extension.about_pod(pod) for extension in extensions().values()]
    return PodWords(
        waits=next((words.waits for words in every if words.waits), None),
        beside=tuple(reason for words in every for reason in words.beside),
        advice={word: text for words in every for word, text in words.advice.items()},
    )
