"""The errors of an applied configuration without those that a real server finds by chance.

The server checks the fields of a struct in the order of a Go map, and stops at a field that the
schema does not have. So such a field hides other errors of its struct in some answers only.
"""

from __future__ import annotations

_HEAD = "failed to create typed "
_SEVERAL = "errors:\n"
_UNDECLARED = ": field not declared in schema"


def without_chance(message: str) -> str:
    """The message with its errors in the order of their texts. A struct with an undeclared field
    has that error alone, without the name of the field."""
    begin, known, rest = message.partition("): ")
    if not known or _HEAD not in begin:
        head, several, lines = message.partition(_SEVERAL)
        return head + several + "\n".join(sorted(lines.split("\n"))) if several else message
    errors = [line.strip() for line in rest.removeprefix(_SEVERAL).split("\n")]
    structs = {_parent(error) for error in errors if error.endswith(_UNDECLARED)}
    kept = {error for error in errors if not any(_is_below(error, struct) for struct in structs)}
    outer = {struct for struct in structs if not any(_is_below(struct, other) for other in structs)}
    return "\n".join([f"{begin}): ", *sorted(kept | {f"{cause}{_UNDECLARED}" for cause in outer})])


def _parent(error: str) -> str:
    """The path of the struct that lacks the field."""
    return error.removesuffix(_UNDECLARED).rpartition(".")[0]


def _is_below(text: str, struct: str) -> bool:
    return text != struct and text.startswith(f"{struct}.")
