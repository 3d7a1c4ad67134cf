"""The generated files are fresh, and the defaults of the chart are valid values."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from claimctl import __version__
from claimctl.commands.install.components import DEFAULT_IMAGE, IMAGE, Choice, chosen, documents
from claimctl.commands.install.rescheduling import SCHEDULE, containers
from generate import __main__ as generate
from generate.chart import CHART, Template
from generate.values import Chart

ROOT = Path(__file__).parents[3]
VALUES = yaml.safe_load((ROOT / CHART / "values.yaml").read_text())


def test_a_stale_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(generate.stale(tmp_path)) == len(generate.rendered())
    assert generate.main(["--check"]) == 0
    assert capsys.readouterr().err == ""


def test_the_defaults_are_valid_and_complete() -> None:
    Chart.model_validate(VALUES)
    for name in VALUES:
        with pytest.raises(ValidationError):
            Chart.model_validate({key: each for key, each in VALUES.items() if key != name})
    with pytest.raises(ValidationError):
        Chart.model_validate({**VALUES, "nosuch": 1})


def test_the_defaults_are_those_of_deploy() -> None:
    [deployment] = [each for each in chosen(Choice()) if each["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert deployment["spec"]["replicas"] == VALUES["replicas"]
    assert container["resources"] == VALUES["resources"]
    assert container["imagePullPolicy"] == VALUES["image"]["pullPolicy"]
    assert f"--log-format={VALUES['logFormat']}" in container["args"]
    assert (VALUES["image"]["repository"], VALUES["image"]["tag"]) == (IMAGE, "")


def test_the_defaults_of_the_rescheduler_are_those_of_deploy() -> None:
    values = VALUES["reschedule"]
    [policy] = [each for each in documents("rescheduler") if each["kind"] == "ConfigMap"]
    [cron_job] = documents("rescheduler-cronjob")
    [loop] = documents("rescheduler-loop")
    assert policy["data"] == {"policy.yaml": values["policy"]}
    assert cron_job["spec"]["schedule"] == values["schedule"] == SCHEDULE
    assert values["dryRun"]
    for document in (cron_job, loop):
        [container] = containers(document)
        assert container["resources"] == values["resources"]
        assert "--dry-run" in container["args"]
    assert f"--descheduling-interval={values['interval']}" in containers(loop)[0]["args"]


def test_the_chart_has_the_version_of_the_project() -> None:
    chart = yaml.safe_load((ROOT / CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
    assert DEFAULT_IMAGE.endswith(f":{__version__}")


def test_braces_in_a_document_are_no_action() -> None:
    text = Template({"metadata": {"name": "x"}, "text": "{{ $labels.a }}"}).text()
    assert """'{{ "{{" }} $labels.a }}'""" in text
