"""Whether an expression is CEL at all; what it means is not looked at."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1024)
def syntax_error(source: str) -> str | None:
    """What a parser says against an expression, or None."""
    import celpy
    from celpy.celparser import CELParseError

    try:
        celpy.Environment().compile(source)
    except CELParseError as error:
        return f"compilation failed: {str(error).splitlines()[0]}"
    return None
