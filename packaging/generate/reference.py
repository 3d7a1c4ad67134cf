"""The reference pages of docs/: commands, API, metrics and reasons, from the code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from claimctl.cli.registry import COMMANDS
from claimctl.commands.claims.meanings import MEANINGS
from claimctl.telemetry.metrics import MEANINGS as METRICS
from claimctl_reschedule.plan.reasons import MEANINGS as STAYS
from generate.crds import custom_resource_definitions

FOLDER = Path("docs/reference")


def rendered() -> dict[Path, str]:
    """The text of each page, by its path in the repository."""
    return {
        FOLDER / "cli.md": _cli(),
        FOLDER / "api.md": _api(),
        FOLDER / "metrics.md": _metrics(),
        FOLDER / "reasons.md": _reasons(),
        FOLDER / "reschedule-reasons.md": _reschedule_reasons(),
    }


def page(title: str, source: str, *parts: str) -> str:
    note = f"<!-- Generated from {source} by `make generate`. -->"
    return "\n\n".join([f"# {title}", note, *parts]) + "\n"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, each))} |" for each in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _cli() -> str:
    rows = ((f"`{each.name}`", each.help) for each in COMMANDS)
    parts = [
        "`claimctl COMMAND --help` and `man claimctl-COMMAND` list the flags of a command, with "
        "examples. [Commands](../commands.md) explains the output. `kubectl claim` is the same "
        "program.",
        table(("command", "what it does"), rows),
        "Every command that asks a cluster has kubectl's connection flags; `claimctl --help` lists "
        "them.",
        "A duration is a number of seconds, or like 30s, 500ms, 5m or 1h30m.",
    ]
    return page("Command line", "the commands", *parts)


WRITTEN_BY_USERS = ("ClaimReservation",)
"""The kinds that people write. Commands write the others."""


def _api() -> str:
    parts = [
        "Fields without a default are optional unless they are marked as required. Commands write "
        "the other kinds, `DowngradePlan` and `RescheduleRecord`: `kubectl explain` shows them, "
        "and what is inside the fields of a status, as `kubectl explain "
        "claimreservation.status.release`."
    ]
    for definition in custom_resource_definitions():
        names = definition["spec"]["names"]
        for version in definition["spec"]["versions"] if names["kind"] in WRITTEN_BY_USERS else ():
            schema = version["schema"]["openAPIV3Schema"]
            group = definition["spec"]["group"]
            parts.append(f"## {names['kind']} ({group}/{version['name']})")
            parts.append(_sentence(schema.get("description", "")))
            for part, whole in (("spec", True), ("status", False)):
                rows = _fields(schema["properties"].get(part, {}), part, whole=whole)
                if described := list(rows):
                    parts.append(table(("field", "type", "what"), described))
    return page("API", "the models of the CRDs", *parts)


def _fields(schema: Mapping[str, Any], path: str, *, whole: bool) -> Iterator[tuple[str, str, str]]:
    """The rows of a schema's fields; with ``whole`` also of the fields inside of them."""
    required = schema.get("required", ())
    for name, each in schema.get("properties", {}).items():
        inner = each.get("items", each)
        place = f"{path}.{name}{'[]' if 'items' in each else ''}"
        yield f"`{place}`", _type(each), _meaning(each, required=name in required)
        if whole:
            yield from _fields(inner, place, whole=True)


def _type(schema: Mapping[str, Any]) -> str:
    inner = schema.get("items")
    if inner:
        return f"list of {inner.get('type', 'object')}s"
    return str(schema.get("format") or schema.get("type", ""))


def _meaning(schema: Mapping[str, Any], *, required: bool) -> str:
    told = [_sentence(schema.get("description", ""))]
    if required:
        told.append("Required.")
    if "default" in schema and schema["default"] != "":
        told.append(f"Default: `{schema['default']}`.")
    if "enum" in schema:
        told.append(f"One of {', '.join(f'`{each}`' for each in schema['enum'])}.")
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        told.append(f"From {low} to {high}.")
    return " ".join(each for each in told if each)


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if not text or text.endswith(".") else f"{text}."


def _metrics() -> str:
    rows = (
        (
            f"`{metric}`",
            str(each.sort),
            ", ".join(f"`{label}`" for label in each.labels),
            each.description,
        )
        for metric, each in METRICS.items()
    )
    return page(
        "Metrics",
        "the table of the metrics",
        "The controller serves these at `/metrics`. Histograms are in seconds.",
        table(("metric", "kind", "labels", "what"), rows),
    )


def _reasons() -> str:
    parts = [
        "A reason is one word in a condition, an Event, or the output of a command. "
        "`claimctl explain CLAIM` shows the reasons of one claim, with names and commands. "
        "`claimctl explain reason/NAME` prints one line of this page."
    ]
    for topic in dict.fromkeys(meaning.topic for meaning in MEANINGS.values()):
        found = {reason: each for reason, each in MEANINGS.items() if each.topic == topic}
        columns = 3 if any(each.remedy for each in found.values()) else 2
        rows = (
            (f"`{reason}`", each.meaning, each.remedy)[:columns] for reason, each in found.items()
        )
        parts += [f"## {topic}", table(("reason", "meaning", "what to do")[:columns], rows)]
    return page("Reasons", "the table of reasons", *parts)


def _reschedule_reasons() -> str:
    stays = ((f"`{reason}`", text) for reason, text in STAYS.items())
    return page(
        "Why `claimctl reschedule` does not move a pod",
        "the table of reasons",
        "`claimctl reschedule --why NAMESPACE/POD` shows the reason of one pod.",
        table(("reason", "meaning"), stays),
    )
