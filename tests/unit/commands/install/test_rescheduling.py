"""What is filled into the manifests of ``claimctl reschedule``."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.commands.install.rescheduling import CHECKSUM, Rescheduling, containers, filled_in

CRON_JOB = Rescheduling("a: b\n", schedule="@daily")
LOOP = Rescheduling("a: b\n", interval="7m")


def pod(*arguments: str) -> dict[str, Any]:
    return {"metadata": {}, "spec": {"containers": [{"args": list(arguments)}]}}


def arguments(document: dict[str, Any]) -> list[str]:
    [container] = containers(document)
    return list(container["args"])


@pytest.mark.parametrize(
    ("wanted", "last"), [(CRON_JOB, "rescheduler-cronjob"), (LOOP, "rescheduler-loop")]
)
def test_an_interval_asks_for_a_loop(wanted: Rescheduling, last: str) -> None:
    assert wanted.components == ("rescheduler-rights", "rescheduler", last)


@pytest.mark.parametrize(("evicts", "kept"), [(False, ["x", "--dry-run"]), (True, ["x"])])
def test_only_those_who_ask_for_evictions_get_them(evicts: bool, kept: list[str]) -> None:
    made: dict[str, Any] = {
        "kind": "CronJob",
        "spec": {"jobTemplate": {"spec": {"template": pod("x", "--dry-run")}}},
    }
    wanted = Rescheduling("a: b\n", schedule="@daily", evicts=evicts)
    assert arguments(filled_in(made, wanted)) == kept
    assert made["spec"]["schedule"] == "@daily"


def test_another_policy_makes_other_pods() -> None:
    sums = []
    for policy in ("a: b\n", "a: c\n", "a: b\n"):
        made: dict[str, Any] = {
            "kind": "Deployment",
            "spec": {"template": pod("--descheduling-interval=5m", "--dry-run")},
        }
        filled_in(made, Rescheduling(policy, interval="7m"))
        assert arguments(made) == ["--descheduling-interval=7m", "--dry-run"]
        sums.append(made["spec"]["template"]["metadata"]["annotations"][CHECKSUM])
    assert sums[0] == sums[2] != sums[1]


def test_the_policy_is_what_was_given() -> None:
    made = {"kind": "ConfigMap", "data": {"policy.yaml": "old", "other": "x"}}
    assert filled_in(made, CRON_JOB)["data"] == {"policy.yaml": "a: b\n"}
    assert containers(made) == []
