"""Whether what the commands say of a state is true, and whether they all say it. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from claimctl.commands.claims.claim_document import ClaimExplanation
from claimctl.commands.claims.workload_document import WorkloadExplanation
from claimctl.commands.doctor.model import CheckVerdict, Finding
from claimctl.telemetry.face import Metric
from labs.agreement.answers import Answers
from labs.agreement.truth import name_of
from labs.torture.blocked import claims_of

_COUNTED = re.compile(r"\b(\d+) pods? waits? since ")
"""What commands say of pods that wait."""
_BEHIND = "its status is older than its spec"
_SAID = (CheckVerdict.PROBLEM, CheckVerdict.WAITS, CheckVerdict.FACT)
_JUDGED = ("held-devices", "waiting-pods", "releases", "reservations")
"""The checks that have what get judges, too. The others look at the objects that lists name."""
_CALM = re.compile("Nothing|No workload holds it|No ClaimReservation names it|Keep its claims ")
"""What the first line of advice says if nothing is wrong: nothing, or what else could be done."""


def verdict(answers: Answers) -> list[str]:
    """What is wrong with the answers; none if they are true and agree."""
    return [
        *_of_waiting_pods(answers),
        *_of_good_order(answers),
        *_of_states(answers),
        *_of_problems(answers),
        *_of_doctor(answers),
        *of_metrics(answers),
    ]


def is_calm(advice: Iterable[str]) -> bool:
    """Whether a command says that there is nothing to do."""
    return _CALM.match(next(iter(advice), "")) is not None


def _of_waiting_pods(answers: Answers) -> Iterator[str]:
    """No command may be calm about a pod that has waited for too long."""
    counted: Counter[str] = Counter()
    for pod in answers.objects.waiting():
        name, claims = name_of(pod), claims_of(pod)
        counted.update(claims & answers.get.keys())
        shown = answers.pods[name]
        if not shown.reasons or shown.since is None or is_calm(shown.advice):
            yield f"explain pod/{name}: it waits, and {shown.state}: {shown.advice}"
        for workload in _makers(answers, name):
            if is_calm(workload.advice):
                yield f"explain {workload.workload_ref.name}: {name} waits: {workload.advice}"
        for claim in sorted(claims & answers.get.keys()):
            if is_calm(answers.explain[claim].advice):
                yield f"explain {claim}: {name} waits: {answers.explain[claim].advice}"
        if not any(
            _names(finding.object, finding.message, {name, *claims}) for finding in answers.findings
        ):
            yield f"doctor: pod {name} waits for {sorted(claims)}, and it does not say so"
    for claim, item in answers.get.items():
        texts = " ".join(problem.message for problem in item.problems)
        said = sum(int(match[1]) for match in _COUNTED.finditer(texts))
        if said != counted[claim]:
            yield f"get: {counted[claim]} pods wait for {claim}, and it says of {said}"


def _makers(answers: Answers, pod: str) -> Iterator[WorkloadExplanation]:
    for workload in answers.workloads.values():
        if pod in {waits.name for waits in workload.waiting}:
            yield workload


def _names(object_: str, message: str, names: set[str]) -> bool:
    return object_ in names or any(re.search(rf"\b{re.escape(name)}\b", message) for name in names)


def _of_good_order(answers: Answers) -> Iterator[str]:
    """In a cluster in good order, nothing is reported."""
    if answers.objects.ailments():
        return
    for finding in answers.findings:
        if not (answers.gauges is None and _is_of_controller(finding)):
            yield f"doctor in good order: {finding.check} {finding.object}: {finding.message}"
    advice = {f"explain pod/{name}": pod.advice for name, pod in answers.pods.items()}
    advice |= {f"explain {'/'.join(key)}": it.advice for key, it in answers.workloads.items()}
    for name, claim in answers.explain.items():
        if answers.gauges is not None or not _is_degraded(claim):
            advice[f"explain {name}"] = claim.advice
    yield from (f"{who} in good order: {it}" for who, it in advice.items() if not is_calm(it))
    problems = [(item.name, item.problems) for item in answers.get.values() if item.problems]
    reasons = [(name, pod.reasons) for name, pod in answers.pods.items() if pod.reasons]
    if problems or reasons:
        yield f"get or explain in good order: {problems} {reasons}"


def _is_of_controller(finding: Finding) -> bool:
    """Whether it is about the controller as torture has left it."""
    return finding.check == "controller" or _BEHIND in finding.message


def _is_degraded(shown: ClaimExplanation) -> bool:
    return shown.controller is not None and shown.controller.degraded


def _of_states(answers: Answers) -> Iterator[str]:
    """All have the same state of a claim."""
    drawn = {it.name: it.state for it in answers.tree.objects if it.kind == "ResourceClaim"}
    for name, item in answers.get.items():
        explained = answers.explain[name].claim
        if explained is None or explained.state != item.state:
            yield f"explain {name}: not in state {item.state}"
        if not drawn.get(name, "").startswith(item.state):
            yield f"tree: {name} is not in state {item.state}: {drawn.get(name)}"
    if answers.get.keys() != answers.explain.keys():
        yield f"get: {sorted(answers.get)}, explain: {sorted(answers.explain)}"


def _of_problems(answers: Answers) -> Iterator[str]:
    """All have the same problems of a claim, and explain is not calm beside one."""
    for name, item in answers.get.items():
        explained = answers.explain[name]
        shown = explained.claim
        if shown is None or shown.problems != item.problems:
            yield f"explain {name}: {shown and shown.problems}; get: {item.problems}"
        tree = [(it.reason, it.message) for it in answers.tree.problems if it.claim == name]
        if tree != [(it.reason, it.message) for it in item.problems]:
            yield f"tree {name}: {tree}; get: {item.problems}"
        if item.problems and is_calm(explained.advice):
            yield f"explain {name}: {explained.advice}; get: {item.problems}"


def _of_doctor(answers: Answers) -> Iterator[str]:
    """A claim has a problem for doctor if it has one for get."""
    reservations = {
        name_of(made): made["spec"]["resourceClaimName"] for made in answers.objects.reservations
    }
    blamed: dict[str, list[Finding]] = {}
    for finding in answers.doctor:
        # of what the controller does not do, get knows nothing
        if finding.verdict not in _SAID or _BEHIND in finding.message:
            continue
        named = {reservations.get(finding.object, finding.object)} & answers.get.keys()
        if not finding.object:
            named = {name for name in answers.get if _names("", finding.message, {name})}
        for name in named:
            blamed.setdefault(name, []).append(finding)
    # of a wrong annotation, doctor names the workload and not its claims
    annotated = any(finding.check == "annotations" for finding in answers.doctor)
    for name, item in answers.get.items():
        told, advice = blamed.get(name, []), answers.explain[name].advice
        problems = [finding for finding in told if finding.verdict is not CheckVerdict.FACT]
        judged = [finding for finding in problems if finding.check in _JUDGED]
        if (item.problems and not told) or (judged and not item.problems):
            yield f"doctor: {told} of {name}; get: {item.problems}"
        if problems and is_calm(advice):
            yield f"doctor: {problems} of {name}; explain: {advice}"
        # a controller that lags has not reported yet what explain sees
        silent = answers.gauges and not (told or annotated)
        if silent and _complains(answers.explain[name], answers):
            yield f"explain {name}: {advice}; doctor: nothing"


def _complains(shown: ClaimExplanation, answers: Answers) -> bool:
    """Whether explain names a problem. One of the controller is none of the claim, a release under
    way is none, and young pods may start soon."""
    under_way = shown.release is not None and shown.release.under_way is not None
    starting = any(pod.since is not None for pod in answers.pods.values())
    return not (is_calm(shown.advice) or _is_degraded(shown) or under_way or starting)


_STATES = {
    "Pending": "unallocated",
    "InUse": "allocated",
    "Allocated": "allocated",
    "Releasing": "releasing",
    "Held": "reserved",
}
"""The state of the metric, by the state of get; of a held claim without pods it is ``idle``."""


def of_metrics(answers: Answers) -> Iterator[str]:
    """The gauges behind the alerts count what the commands show."""
    if answers.gauges is None:
        return
    reserved = {made["spec"]["resourceClaimName"] for made in answers.objects.reservations}
    shown = [item for name, item in answers.get.items() if name in reserved]
    if not any(item.state == "Deleting" for item in shown):
        wanted = Counter("idle" if item.idle else _STATES[item.state] for item in shown)
        wanted["missing"] = len(reserved - answers.get.keys())
        for state in sorted({*_STATES.values(), "idle", "missing"}):
            number = answers.gauges.of(Metric.CLAIMS, state)
            if number != wanted[state]:
                yield f"metric claims {state}: {number}; get: {[it.state for it in shown]}"
    unready = answers.gauges.of(Metric.RESERVATIONS_NOT_READY)
    lines = sum(finding.check == "reservations" for finding in answers.findings)
    if bool(unready) != bool(lines):
        yield f"metric reservations_not_ready: {unready}; doctor: {lines}"
    dangling = answers.gauges.of(Metric.DANGLING_REFERENCES)
    told = {finding.check for finding in answers.doctor if finding.verdict in _SAID}
    if dangling and not told & {"dangling-references", "orphans"}:
        yield f"metric dangling_references: {dangling}; doctor: {sorted(told)}"
