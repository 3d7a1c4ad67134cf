"""A policy file after it was checked, in the same form for both versions."""

from __future__ import annotations

from dataclasses import dataclass

from claimctl.reschedule.policyfile.v1alpha2 import DefaultEvictorArgs, PolicyModel


@dataclass(frozen=True, slots=True)
class Plugin:
    """One enabled plugin with its args."""

    name: str
    args: PolicyModel


@dataclass(frozen=True, slots=True)
class CheckedProfile:
    """``deschedule`` and ``balance`` have the enabled plugins in the order of the file."""

    name: str
    evictor: DefaultEvictorArgs
    deschedule: tuple[Plugin, ...] = ()
    balance: tuple[Plugin, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedPolicy:
    """The whole file.

    Attributes:
        per_node, per_namespace, total: how many pods may be evicted in one run; None: any number.
        skipped: what ``--skip-unsupported`` left out, one line each.
        notes: what a reader of the file might not expect, one line each.
    """

    profiles: tuple[CheckedProfile, ...]
    node_selector: str = ""
    per_node: int | None = None
    per_namespace: int | None = None
    total: int | None = None
    grace_period_seconds: int | None = None
    failure_events: bool = False
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
