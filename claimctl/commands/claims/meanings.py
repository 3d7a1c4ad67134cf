"""What every reason of claimctl means, and what to do about it.

A new ``Reason`` has an entry in ``meanings.toml``, below the question that it answers.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from claimctl.reservation.facts.reasons import Reason

RELEASE_WAITS = "Why a release waits"
"""The topic whose advice is about a release that has begun; other advice is about the hold."""


@dataclass(frozen=True, slots=True)
class ReasonMeaning:
    topic: str
    """Which question the reason answers."""
    meaning: str
    """One sentence: what is so."""
    remedy: str = ""
    """What to do; "" if there is nothing to do."""
    advice: str = ""
    """What ``explain`` advises for a claim of which the reason is true; "" for nothing."""


def _read() -> dict[Reason, ReasonMeaning]:
    text = files(__package__).joinpath("meanings.toml").read_text(encoding="utf-8")
    return {
        Reason(name): ReasonMeaning(topic, **texts)
        for topic, meanings in tomllib.loads(text).items()
        for name, texts in meanings.items()
    }


MEANINGS: Mapping[Reason, ReasonMeaning] = _read()
