"""The commands that ``claimctl --help`` lists. This module imports none of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Group(StrEnum):
    """The parts of the list of commands, in their order."""

    LOOK = "Look"
    ACT = "Act"
    OPERATE = "Operate"
    TRY = "Try it"


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Attributes:
        name: its words: ``get``, or ``uninstall verify``.
        module: the module that has the function ``function``, which is the command; '' if the
            extension of the command's name has it.
    """

    name: str
    help: str
    module: str
    function: str
    group: Group

    @property
    def page(self) -> str:
        """The name of its manual page."""
        return f"claimctl-{self.name.replace(' ', '-')}"


FAMILIES = {
    "uninstall": "Take claimctl out of the cluster.",
    "upgrade": "Take claims and PodGroups over an upgrade of Kubernetes.",
    "downgrade": "Switch a feature of Kubernetes off under held claims.",
}
"""First words that are no commands of their own, and what their commands are for."""

ALIASES = {"downgrade-prepare": "downgrade prepare"}
"""Other names of commands, which ``--help`` gives in its last line."""

_TABLE = {
    Group.LOOK: {
        "get": ("claims.get", "List claims, their state and their holders."),
        "explain": ("claims.explain", "Show who holds a claim and why."),
        "timeline": ("timeline", "Show who held a claim's devices when."),
        "tree": ("tree", "Show how workloads, pods, claims and devices connect."),
        "doctor": ("doctor:doctor", "Check the cluster and the installation."),
        "doctor driver": ("drivers", "Try what a DRA driver does with held and shared claims."),
        "doctor orphans": ("orphans", "Find and free claims that nothing else will free."),
        "version": ("doctor:version", "Print the versions of client and cluster."),
    },
    Group.ACT: {
        "reserve": ("claims.reserve", "Reserve a workload's claims for it."),
        "release": ("claims.release", "Release a claim by hand."),
        "reschedule": ("", "Move pods to better nodes, aware of claims."),
    },
    Group.OPERATE: {
        "install": ("install", "Install claimctl in the cluster, or print its manifests."),
        "completion": ("claimctl.cli.completion", "Print a shell's completion script."),
        "uninstall prepare": ("uninstall:prepare", "Remove what would block anything; pods go on."),
        "uninstall verify": ("uninstall:verify", "Show what is left of claimctl; write nothing."),
        "uninstall run": ("uninstall:run", "Prepare, stop the controller, delete claimctl."),
        "upgrade prepare": (
            "downgrade:upgrade_prepare",
            "Take PodGroups out of the way of an upgrade.",
        ),
        "upgrade status": (
            "downgrade:upgrade_status",
            "Show the next step of an upgrade, and what blocks it.",
        ),
        "upgrade restore": ("downgrade:upgrade_restore", "Let PodGroups return after an upgrade."),
        "downgrade prepare": (
            "downgrade:downgrade_prepare",
            "Replace workload references by pod references.",
        ),
        "downgrade status": (
            "downgrade:downgrade_status",
            "Show the next step of a downgrade, and what blocks it.",
        ),
        "downgrade restore": (
            "downgrade:downgrade_restore",
            "Let replaced workload references return.",
        ),
        "controller": ("controller", "Run the controller."),
    },
    Group.TRY: {
        "demo": ("", "Show the whole story on an embedded cluster."),
        "demo cluster": ("", "Serve an embedded cluster to play with."),
    },
}
"""By group and name: where the command is, and the help. ``doctor:version`` is the function
``version`` in ``claimctl.commands.doctor.doctor``; without a colon the function is ``command``. If
the place is '', an extension has the command (see ``claimctl.cli.extensions``)."""


def _command(group: Group, name: str, place: str, help_: str) -> Command:
    module, _, function = place.partition(":")
    if module and not module.startswith("claimctl"):
        folder, _, file = module.partition(".")
        module = f"claimctl.commands.{folder}.{file or folder}"
    return Command(name, help_, module, function or "command", group)


COMMANDS = tuple(
    _command(group, name, *row) for group, rows in _TABLE.items() for name, row in rows.items()
)
BY_NAME = {command.name: command for command in COMMANDS}


def parts_of(word: str) -> list[Command]:
    """The commands of two words that begin with this one."""
    return [command for command in COMMANDS if command.name.startswith(f"{word} ")]


def top_level() -> list[tuple[Group, str, str]]:
    """The first word of every command, once, with its group and one line of help."""
    words = dict.fromkeys((command.group, command.name.split()[0]) for command in COMMANDS)
    return [(group, word, _line(word)) for group, word in words]


def _line(word: str) -> str:
    seconds = ", ".join(command.name.split()[1] for command in parts_of(word))
    if word in FAMILIES:
        return f"{FAMILIES[word].rstrip('.')}: {seconds}."
    alone = BY_NAME[word].help
    return f"{alone.rstrip('.')}; also: {seconds}." if seconds else alone


def entry_of(words: Sequence[str]) -> Command | None:
    """The command that a command line calls: by its first two words, else by the first."""
    if words[0] in ALIASES:
        return BY_NAME[ALIASES[words[0]]]
    return BY_NAME.get(" ".join(words[:2])) or BY_NAME.get(words[0])


def meant_by(word: str) -> str:
    """A command of two words that somebody may mean by one word; '' if there is none.

    ``orphans`` is ``doctor orphans``, and ``uninstall-prepare`` is ``uninstall prepare``.
    """
    spoken = word.replace("-", " ")
    return next((name for name in BY_NAME if name == spoken or name.endswith(f" {word}")), "")
