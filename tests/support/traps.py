"""Small files that cost their reader much."""

from __future__ import annotations

from itertools import pairwise


def bomb(form: str) -> str:
    """Ten lines that stand for three billion values."""
    lines = ["a: &a {x: 1}"]
    for last, name in pairwise("abcdefghij"):
        lines.append(f"{name}: &{name} {form.format(', '.join([f'*{last}'] * 9))}")
    return "\n".join(lines)
