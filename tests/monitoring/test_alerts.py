"""Every alert fires when it should and only then, names known metrics, and leads to a page."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from claimctl.telemetry.metrics import MEANINGS, Sort
from tests.monitoring.rules import ALERTS, PAGES, PROMTOOL, ROOT, Alert, needs_promtool, write_rules
from tests.monitoring.selectors import selectors
from tests.support.runbooks import sections

Json = dict[str, Any]
CASES: Json = yaml.safe_load(Path(__file__).with_name("alerts.yaml").read_text())
BY_NAME = {alert.name: alert for alert in ALERTS}
named = pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)


def exported() -> dict[str, set[str]]:
    """The labels of every series that the controller exports, by its name."""
    found: dict[str, set[str]] = {}
    for metric, meaning in MEANINGS.items():
        labels = set(meaning.labels)
        if meaning.sort is Sort.HISTOGRAM:
            found[f"{metric}_bucket"] = labels | {"le"}
            found[f"{metric}_count"] = found[f"{metric}_sum"] = labels
        else:
            found[metric.value] = labels
    return found


@named
def test_it_asks_for_series_that_the_controller_exports(alert: Alert) -> None:
    known = exported()
    asked = selectors(alert.expression)
    assert asked
    for selector in asked:
        assert {label for label, _, _ in selector.matchers} <= known[selector.name]


@named
def test_its_page_is_there_with_what_to_look_at_and_to_do(alert: Alert) -> None:
    page = ROOT / alert.annotations["runbook"]
    assert page == PAGES / f"{alert.name}.md"
    text = page.read_text()
    assert text.startswith(f"# {alert.name}: ")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Meaning", "Look", "Do"]
    assert sections(f"{alert.name}.md", PAGES)["Look"].commands
    for link in re.findall(r"\]\(([^)#]+)", text):
        assert (PAGES / link).exists(), link


def test_every_page_belongs_to_an_alert_and_every_alert_has_cases() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == set(BY_NAME) == set(CASES)


def test_the_page_about_monitoring_lists_the_alerts() -> None:
    text = (PAGES.parents[1] / "monitoring.md").read_text()
    assert re.findall(r"^\| \[(Claimctl\w+)\]", text, re.MULTILINE) == list(BY_NAME)


@needs_promtool
@named
def test_it_fires_and_stays_silent(alert: Alert, tmp_path: Path) -> None:
    case = CASES[alert.name]
    tests = [_test(alert, case["fires"], fires=True)]
    tests += [_test(alert, each, fires=False) for each in case["silent"]]
    write_rules(tmp_path)
    file = tmp_path / "test.yaml"
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}
    file.write_text(yaml.safe_dump(document))
    done = subprocess.run(
        [PROMTOOL, "test", "rules", str(file)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_promtool_accepts_the_rules(tmp_path: Path) -> None:
    done = subprocess.run(
        [PROMTOOL, "check", "rules", str(write_rules(tmp_path))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"SUCCESS: {len(ALERTS)} rules found" in done.stdout


def _test(alert: Alert, case: Json, *, fires: bool) -> Json:
    return {
        "interval": "1m",
        "input_series": [
            {"series": name, "values": str(values)} for name, values in case["series"].items()
        ],
        "alert_rule_test": [
            {
                "eval_time": case["at"],
                "alertname": alert.name,
                "exp_alerts": [_fired(alert, case)] if fires else [],
            }
        ],
    }


def _fired(alert: Alert, case: Json) -> Json:
    return {
        "exp_labels": {"severity": _severity(alert), **case["labels"]},
        "exp_annotations": _filled(alert, case),
    }


def _severity(alert: Alert) -> str:
    return {"ClaimctlNoLeader": "critical", "ClaimctlDevicesIdle": "info"}.get(
        alert.name, "warning"
    )


def _filled(alert: Alert, case: Json) -> dict[str, str]:
    """The annotations as Prometheus fills them in."""

    def value(found: re.Match[str]) -> str:
        name = found.group(1)
        return str(case["value"] if name == "$value" else case["labels"][name.split(".")[1]])

    return {key: re.sub(r"\{\{ (\S+) \}\}", value, text) for key, text in alert.annotations.items()}
