"""Formats that Go decodes with code of their own: times, quantities, bytes, int-or-string."""

from __future__ import annotations

import base64
import binascii
import re
from datetime import datetime
from typing import Any

FIELD = "struct field {}"
"""A placeholder for the place of the value in error texts."""
_QUANTITY = re.compile(r"([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)\Z")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)\Z")
_SUFFIX = re.compile(r"([eE][-+]?\d+|[numkMGTPE]|[KMGTPE]i)?\Z")
_QUANTITY_TEXT = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_SUFFIX_TEXT = "unable to parse quantity's suffix"
_LAYOUTS = {
    "date-time": ("2006-01-02T15:04:05Z07:00", r"(?:\.\d+)?"),
    "micro-time": ("2006-01-02T15:04:05.000000Z07:00", r"\.\d{6}"),
}
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def format_problem(form: str, value: Any) -> str:
    """Go's error text for a value of an OpenAPI format; '' if it is valid."""
    if form in _LAYOUTS:
        return _time_problem(form, value)
    if form == "byte":
        return _bytes_problem(value)
    if form == "quantity":
        return _quantity_problem(value)
    return _int_or_string_problem(value)


def _json_name(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    names = {str: "string", int: "number", float: "number", list: "array", dict: "object"}
    return names[type(value)]


def _not_a_string(value: Any, go_type: str) -> str:
    return f"json: cannot unmarshal {_json_name(value)} into Go {FIELD} of type {go_type}"


def _time_problem(form: str, value: Any) -> str:
    if not isinstance(value, str):
        return _not_a_string(value, "string")
    layout, fraction = _LAYOUTS[form]
    whole = rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d{fraction}(Z|[+-]\d\d:\d\d)"
    if re.fullmatch(whole, value):
        return "" if _exists(value) else f'parsing time "{value}": day out of range'
    return f'parsing time "{value}" as "{layout}": {_unread(value, form)}'


def _exists(text: str) -> bool:
    try:
        datetime.fromisoformat(text[:19])
    except ValueError:
        return False
    return True


def _unread(text: str, form: str) -> str:
    date = _DATE.match(text)
    if date is None:
        return _unread_date(text)
    rest = text[date.end() :]
    if form == "date-time":
        return f'cannot parse "{rest}" as "Z07:00"'
    digits = re.match(r"\.\d{6}(\d*)", rest)
    if digits is None:
        return f'cannot parse "{rest}" as ".000000"'
    return f'cannot parse "{digits.group(1)}{rest[digits.end() :]}" as "Z07:00"'


_PARTS = (("2006", 4), ("-", 1), ("01", 2), ("-", 1), ("02", 2), ("T", 1))
_REST = (("15", 2), (":", 1), ("04", 2), (":", 1), ("05", 2))


def _unread_date(text: str) -> str:
    """The error text for the first part of the layout that the text does not match."""
    position = 0
    for part, length in (*_PARTS, *_REST):
        piece = text[position : position + length]
        good = piece == part if part in "-T:" else len(piece) == length and piece.isdigit()
        if not good:
            return f'cannot parse "{text[position:]}" as "{part}"'
        position += length
    return f'cannot parse "{text[position:]}" as "Z07:00"'


def _bytes_problem(value: Any) -> str:
    """Bytes are a text in base64, or a list of numbers. A null in the list counts as zero."""
    if isinstance(value, list):
        return next(filter(None, map(_byte_problem, value)), "")
    if not isinstance(value, str):
        return _not_a_string(value, "[]uint8")
    try:
        base64.b64decode(without_breaks(value), validate=True)
    except (binascii.Error, ValueError):
        return f"illegal base64 data at input byte {_position_of_error(value)}"
    return ""


def _byte_problem(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return _not_a_string(value, "uint8")
    if isinstance(value, int) and 0 <= value <= 255:
        return ""
    return _not_a_string(value, "uint8").replace("number", f"number {value}")


_BREAKS = "\r\n"


def without_breaks(text: str) -> str:
    """Base64 without line breaks, which Go skips: blocks of YAML have them."""
    return text.translate({ord(letter): None for letter in _BREAKS})


_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def _position_of_error(text: str) -> int:
    """The position of Go's error: a foreign letter, or the start of the last group of four."""
    for index, letter in enumerate(text):
        if letter not in _ALPHABET and letter not in _BREAKS:
            return index
    return len(text) - len(without_breaks(text)) % 4


def _quantity_problem(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return _QUANTITY_TEXT
    text = str(value)
    match = _QUANTITY.match(text)
    if match is None or not _NUMBER.match(match.group(1)):
        return _QUANTITY_TEXT
    return "" if _SUFFIX.match(match.group(2)) else _SUFFIX_TEXT


def _int_or_string_problem(value: Any) -> str:
    if isinstance(value, str):
        return ""
    if isinstance(value, bool) or not isinstance(value, int):
        return _not_a_string(value, "int32").replace("number", f"number {value}")
    if not -(2**31) <= value < 2**31:
        return f"json: cannot unmarshal number {value} into Go {FIELD} of type int32"
    return ""
