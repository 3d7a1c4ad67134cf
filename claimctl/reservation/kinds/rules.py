"""The rule of one kind: what it says about a workload, and what is wrong with the rule itself.

A rule says one of three things about each question: yes, no, or nothing. It says nothing where
its expression fails or has a value of another type. Whatever depends on such a question stays as
it is.

A further question is a field of ``Rule``, whose expression ``rule_of`` copies from the
WorkloadKind, and a field of ``Verdict``, which ``judge`` answers. ``problems_of`` lists the fields
that are checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from claimctl.reservation.kinds.expressions import ExpressionError, compiled, reads_status
from claimctl.reservation.kinds.subjects import Subject, Unfit, subject_of
from claimctl.wire.workload_kinds import WorkloadKind

_DIGITS = 18
"""The most digits of a generation."""
Kind = tuple[str, str]
"""API group and kind."""


@dataclass(frozen=True, slots=True)
class Rule:
    """When workloads of a kind are idle, have ended, and how many pods they want."""

    group: str
    kind: str
    plural: str
    idle: str = ""
    ended: str = ""
    pods: str = ""
    ordinals: tuple[str, ...] = ()
    """How many ordinals a workload has, and how many members each of their groups."""
    children: tuple[Kind, ...] = ()
    """The kinds between a workload and its pods."""
    copies_annotations: bool = False
    """Whether the controller of the kind copies annotations to what it makes."""
    source: str = "shipped"
    """Where the rule is from, for people."""

    @property
    def key(self) -> Kind:
        return self.group, self.kind

    @property
    def origin(self) -> str:
        """Whose rule it is, after 'by'."""
        ours = {"shipped": "claimctl's rule", "default": "no rule: only a scale of 0 is idle"}
        return ours.get(self.source, self.source)

    @property
    def name(self) -> str:
        """The name of its WorkloadKind; '' if nobody has described the kind."""
        return f"{self.plural}.{self.group}" if self.source != "default" else ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rule says about one version of a workload. None: the rule says nothing."""

    idle: bool | None = False
    ended: bool | None = False
    pods: int | None = None
    ordinals: tuple[int | None, ...] = ()
    """How many ordinals the workload has, and how many members each of their groups; None for one
    of which the rule says nothing."""
    problem: str = ""
    """Why the rule says nothing, with the field of the WorkloadKind."""
    behind: bool = False
    """Whether the status belongs to an earlier generation of the spec."""


def rule_of(document: WorkloadKind, source: str) -> Rule:
    """The rule of a WorkloadKind; its name is ``plural.group``."""
    spec, name = document.spec, document.metadata.name
    return Rule(
        group=spec.group,
        kind=spec.kind,
        plural=name.removesuffix(f".{spec.group}"),
        idle=spec.idle,
        ended=spec.ended,
        pods=spec.pods,
        ordinals=spec.ordinals.counts if spec.ordinals is not None else (),
        children=tuple((child.group, child.kind) for child in spec.children),
        copies_annotations=spec.copies_annotations,
        source=source,
    )


def judge(rule: Rule, document: bytes) -> Verdict:
    """What the rule says about a workload, given as JSON.

    While the status belongs to an earlier generation of the spec, no expression that reads the
    status is true: the controller of the workload has not seen the present spec.
    """
    try:
        subject = subject_of(document, (rule.idle, rule.ended, rule.pods, *rule.ordinals))
    except Unfit as error:
        return Verdict(idle=None, ended=None, problem=str(error))
    behind = _is_behind(subject.document)
    problems: list[str] = []
    ended = _answer(rule.ended, "ended", subject, behind, problems)
    idle = _answer(rule.idle, "idle", subject, behind, problems)
    pods = _count(rule.pods, subject)
    # a claim may be deleted whose ordinal is not among them, so no late status counts
    ordinals = tuple(
        None if behind and reads_status(source) else _count(source, subject)
        for source in rule.ordinals
    )
    return Verdict(idle, ended, pods, ordinals, "; ".join(problems), behind)


def _is_behind(subject: Mapping[str, Any]) -> bool:
    """Whether the status belongs to an earlier generation; False if it does not say to which."""
    observed = subject["status"].get("observedGeneration") if _is_map(subject["status"]) else None
    if isinstance(observed, str) and observed.isascii() and observed.isdigit():
        # that of an Argo Rollout is a text
        observed = int(observed[:_DIGITS])
    generation = subject["metadata"].get("generation", 0) if _is_map(subject["metadata"]) else 0
    return isinstance(observed, int) and isinstance(generation, int) and observed < generation


def _is_map(value: Any) -> bool:
    return isinstance(value, dict)


def _answer(
    source: str, field: str, subject: Subject, behind: bool, problems: list[str]
) -> bool | None:
    """Yes or no; None if the rule says nothing. Then the reason is added to ``problems``."""
    if not source or (behind and reads_status(source)):
        return False
    try:
        value = compiled(source).value(subject)
    except ExpressionError as error:
        problems.append(f"{field} {error}")
        return None
    if isinstance(value, bool):
        return value
    problems.append(f"{field} has the value {str(value)[:40]!r}, which is not true or false")
    return None


def _count(source: str, subject: Subject) -> int | None:
    """The number of pods or ordinals; None if it is unknown."""
    try:
        value = compiled(source).value(subject) if source else None
    except ExpressionError:
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


_NOTHING = subject_of(b"{}", ())
"""A workload that has neither spec nor status."""


def problems_of(document: WorkloadKind) -> Iterator[tuple[str, str]]:
    """What is wrong with a WorkloadKind: the field, and the problem in one line."""
    spec, name = document.spec, document.metadata.name
    plural = name.removesuffix(f".{spec.group}")
    if not spec.group or plural == name or not plural or "." in plural:
        yield "metadata.name", f"{name!r} is not the plural of the kind, a dot, and {spec.group}"
    counts = spec.ordinals.counts if spec.ordinals is not None else ()
    sources = [("idle", spec.idle), ("ended", spec.ended), ("pods", spec.pods)]
    sources += [(f"ordinals.counts[{at}]", source) for at, source in enumerate(counts)]
    for field, source in sources:
        if source and (problem := _problem(source)):
            yield f"spec.{field}", problem
    if spec.ended and _is_true_for_nothing(spec.ended):
        yield "spec.ended", "is true for a workload that has neither spec nor status"


def _problem(source: str) -> str:
    """What is wrong with an expression, whatever the object; '' if nothing is."""
    try:
        expression = compiled(source)
        if "self" not in expression.variables:
            return "does not use self"
        expression.value(_NOTHING)
    except ExpressionError as error:
        # a field that this object lacks may be there in others
        return str(error) if error.always else ""
    return ""


def _is_true_for_nothing(source: str) -> bool:
    try:
        return compiled(source).value(_NOTHING) is True
    except ExpressionError:
        return False
