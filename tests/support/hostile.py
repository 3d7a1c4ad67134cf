"""Texts that a tenant may write, and what must not be left of them in what people read."""

from __future__ import annotations

from random import Random

SIGNS = (
    *("\x1b[2J\x1b[H", "\x1b]52;c;cm0gLXJmIC8=\x07", "\x1b[31m", "\x9b2J", "\x9d0;title\x9c"),
    *("\n", "\r", "\r\n", "\t", "\v", "\f", "\x08", "\x00", "\x7f", "\x85", "\u2028", "\u2029"),
    *("\u202a", "\u202e", "\u2066", "\u2069", "\u200e", "\u200f", "\u061c"),
    *("\u200b", "\u200d", "\u2060", "\ufeff", "\xad", "\U000e0041"),
)
"""What a terminal or a browser obeys, or what nobody sees."""
MARKUP = (
    *('"', "'", "`", "\\", "<", ">", "&", "#", ";", "%", "%%", "{", "}", "[", "]", "(", ")", "|"),
    *("<script>alert(1)</script>", "</text>", "-->", "<!--", "]]>", "<br>", "&lt;", "&#27;"),
    *('"]\nclick v0 href "javascript:alert(1)"', "%%{init: {'securityLevel': 'loose'}}%%"),
    *('"];\n evil -> v0;', "\\N", '\\"', "#quot;", "#35;", "$$x$$", "style v0 fill:#f00;", "end"),
    *("[bold]", "[/]", "{0}", "%s", "~~~mermaid", "---", "ä", "☃", "javascript:"),
)
"""What a language of pictures may take for its own."""
FORGED = "FORGED"
"""Stands after a line break, as the answer that a tenant would have an administrator read."""
TEXT = f"say{''.join(SIGNS)}\n{FORGED}: nothing is wrong\r{FORGED}\u2028{FORGED}\x85{FORGED}"


def texts(seed: int, count: int) -> list[str]:
    """Texts of random parts of all that is hostile, no two of which are equal."""
    rng = Random(seed)
    parts = (*SIGNS, *MARKUP, "a", "B9", " ", "/")
    return [f"{number}{''.join(rng.choices(parts, k=8))}" for number in range(count)]


def obeyed(text: str) -> set[str]:
    """The signs of a printed text that are no plain signs and no line breaks of its own."""
    return {sign for sign in text if not sign.isprintable() and sign != "\n"}


def forged_lines(text: str) -> list[str]:
    """The lines that begin with what a tenant wrote."""
    return [line for line in text.split("\n") if line.startswith(FORGED)]
