"""The base of all wire structs, and conversions between structs and JSON bytes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from claimctl.wire import times
from claimctl.wire.mending import mended
from claimctl.wire.nesting import MOST_LEVELS, TooDeep, depth

T = TypeVar("T")
Body = bytes | bytearray
"""The body of an answer: ``bytes`` if it came in one piece."""
Object = dict[str, Any]
"""A Kubernetes object, or a part of one, as plain JSON."""


_OF_TIME = re.compile(r"\b(datetime|Time)\b")


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """An immutable piece of a Kubernetes object; field names are camelCase on the wire.

    Its times are between 1970 and 9000 (see ``times``): another one raises ValueError.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        types = inspect.get_annotations(cls)
        names = [name for name, type_ in types.items() if _OF_TIME.search(str(type_))]
        if names:
            before = getattr(cls, "__post_init__", None)
            cls.__post_init__ = times.refusal(names, before)  # type: ignore[attr-defined]  # msgspec looks for it after this


class Present(Wire, frozen=True, kw_only=True):
    """An object of which claimctl needs to know only that it is there."""


EMPTY = msgspec.Raw(b"{}")
"""The value of an undecoded object that is absent."""


def null_is_empty(struct: Wire, field: str, value: msgspec.Raw) -> None:
    """Replace a null in an undecoded field by ``EMPTY``: the decoder does not do that itself.

    Call it from ``__post_init__``, before the struct is visible to anything else.
    """
    if bytes(value) == b"null":
        msgspec.structs.force_setattr(struct, field, EMPTY)


_encoder = msgspec.json.Encoder()
_sorting = msgspec.json.Encoder(order="deterministic")
_ESCAPED = re.compile("[<>&\u2028\u2029]")


def encode(value: object) -> bytes:
    """Encode a struct or plain JSON value as compact JSON bytes."""
    return _encoder.encode(value)


def encode_as_go(value: object) -> bytes:
    """Encode a plain JSON value as Go does. A server stores opaque parameters as they come, and may
    refuse every change of an object that has them in another form."""
    text = _sorting.encode(value).decode()
    return _ESCAPED.sub(lambda special: f"\\u{ord(special[0]):04x}", text).encode()


_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def _decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    """The cached decoder of a type; building one costs more than decoding a small object."""
    decoder = _decoders.get(type_)
    if decoder is None:
        decoder = _decoders[type_] = msgspec.json.Decoder(type_)
    return decoder


def decode(data: Body | str | msgspec.Raw, type_: type[T], *, mend: bool = True) -> T:
    """Decode JSON bytes to ``type_``. Null means absent, as everywhere in Kubernetes.

    A time that cannot be computed with is absent, too (see ``mending``).

    Args:
        mend: False refuses nulls, times and numbers that ``type_`` does not allow, for a caller
            that wants to decode only a part of the data again.

    Raises:
        msgspec.ValidationError: the JSON does not have the shape of ``type_``.
        msgspec.DecodeError: the bytes are not JSON; ``TooDeep`` if they are nested too deeply.
    """
    decoder: msgspec.json.Decoder[T] = _decoder(type_)
    try:
        return decoder.decode(data)
    except (msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
        return _mended(decoder, data, error, mend=mend)


def _mended(
    decoder: msgspec.json.Decoder[T],
    data: Body | str | msgspec.Raw,
    error: Exception,
    *,
    mend: bool,
) -> T:
    raw = data.encode() if isinstance(data, str) else bytes(data)
    if mend and isinstance(error, msgspec.ValidationError):
        try:
            return decoder.decode(mended(raw, decoder.type))
        except (UnicodeDecodeError, RecursionError) as other:
            error = other
    if isinstance(error, msgspec.ValidationError):
        raise error
    if isinstance(error, RecursionError):
        raise TooDeep("the JSON is nested too deeply") from error
    # msgspec accepts these two types without a check.
    raise msgspec.DecodeError(f"not JSON: {error}") from error


def decode_plain(data: Body | msgspec.Raw) -> Object:
    """Decode a JSON object to plain values.

    Raises:
        msgspec.DecodeError: the bytes are no JSON object; ``TooDeep`` if it is nested more than
            ``MOST_LEVELS`` deep.
    """
    if depth(bytes(data)) > MOST_LEVELS:
        raise TooDeep(f"the JSON is nested more than {MOST_LEVELS} levels deep")
    return decode(data, Object)


def to_plain(value: object) -> Any:
    """A struct as plain dicts and lists with JSON names, for patches and output."""
    return msgspec.to_builtins(value)


def from_plain(value: object, type_: type[T]) -> T:
    """Plain dicts and lists as ``type_``, by the rules of ``decode`` and with its errors."""
    return decode(encode(value), type_)


def merge_diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON merge patch (RFC 7386) that turns ``old`` into ``new``; lists are replaced whole.

    A field that only ``old`` has is null in it, because a merge patch keeps what it does not name.
    """
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if changed := merge_diff(before, value):
                patch[key] = changed
        elif before != value:
            patch[key] = value
    return patch
