"""Messages of refusals without the structs, lists and maps that they print.

A real server prints a wrong value as it has it in memory: a struct of its own, with its own fields
in their own order, as JSON or (before 1.34) in Go's syntax. Such a print says nothing that the
request did not say, so it is compared as ``<value>``. Texts, numbers and booleans are compared as
they are, and so is everything around the print.
"""

from __future__ import annotations

import re

_BEFORE = re.compile(r"value: (?=null\b|[\[{&]|map\[|[A-Za-z][\w.]*[{(]|\(\*)")
_TYPE = re.compile(r"(?:&|\*|\[\]|map\[[\w.]+\]|[\w.]+)*")
_PAIRS = {"{": "}", "[": "]", "(": ")"}
PRINTED = "<value>"


def without_printed_values(message: str) -> str:
    """``spec: Invalid value: {"A":1}: field is immutable`` has ``<value>`` in place of the JSON."""
    parts: list[str] = []
    position = 0
    while (match := _BEFORE.search(message, position)) is not None:
        parts += [message[position : match.end()], PRINTED]
        position = _end(message, match.end())
    return "".join([*parts, message[position:]])


def _end(message: str, start: int) -> int:
    """Where a printed value ends that begins at ``start``: a Go type, and what is in brackets."""
    typed = _TYPE.match(message, start)
    position = start if typed is None else typed.end()
    while message[position : position + 1] in (*_PAIRS,):
        position = _closed(message, position)
    return position


def _closed(message: str, start: int) -> int:
    """Behind the bracket that closes the one at ``start``; brackets in texts do not count."""
    closing: list[str] = []
    position = start
    while position < len(message):
        letter = message[position]
        if letter == '"':
            position = _text_end(message, position)
            continue
        if letter in _PAIRS:
            closing.append(_PAIRS[letter])
        elif letter == closing[-1]:
            closing.pop()
        position += 1
        if not closing:
            break
    return position


def _text_end(message: str, start: int) -> int:
    position = start + 1
    while position < len(message) and message[position] != '"':
        position += 2 if message[position] == "\\" else 1
    return position + 1
