"""What the chart renders is what ``crds/``, ``rbac/`` and ``deploy/`` say."""

from __future__ import annotations

from pathlib import Path

import pytest

from claimctl.commands.install.components import FOLDERS, Choice, chosen
from claimctl.commands.install.rescheduling import Rescheduling
from tests.chart.helm import CHART, Helm, Json, documents, needs_helm

pytestmark = needs_helm
CHARTS_OWN = ("app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "helm.sh/chart")


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    return Helm(tmp_path)


def plain(document: Json) -> Json:
    """The document without the labels that mark a release or a version."""
    meta = document["metadata"]
    labels = {
        key: each for key, each in (meta.get("labels") or {}).items() if key not in CHARTS_OWN
    }
    labels.pop("app.kubernetes.io/version", None)
    return {**document, "metadata": {**meta, "labels": labels}}


def place(document: Json) -> tuple[str, str]:
    return document["kind"], document["metadata"]["name"]


def by_place(found: list[Json]) -> dict[tuple[str, str], Json]:
    placed = {place(each): plain(each) for each in found}
    assert len(placed) == len(found)
    return placed


@pytest.mark.parametrize("namespace", ["claimctl-system", "gpus"])
def test_the_defaults_are_the_base_installation(helm: Helm, namespace: str) -> None:
    expected = by_place(chosen(Choice(namespace=namespace)))
    # The namespace comes from helm install --create-namespace.
    expected.pop(("Namespace", namespace))
    assert by_place(helm.template(namespace=namespace)) == expected


def test_each_component_is_switched_on_by_a_value(helm: Helm) -> None:
    switched = helm.template(
        "monitoring.enabled=true",
        "networkPolicy.enabled=true",
        "admissionPolicy.enabled=true",
        "podDeletion.enabled=true",
        "stickyClaims.enabled=true",
        "limits.enabled=true",
        "workloads.enabled=true",
        "reschedule.avoidance=true",
    )
    expected = by_place(chosen(Choice((*FOLDERS,))))
    expected.pop(("Namespace", "claimctl-system"))
    assert by_place(switched) == expected


POLICY = """\
# only an example
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: spread
  plugins: {balance: {enabled: [RemoveDuplicates]}}
"""


@pytest.mark.parametrize(
    ("wanted", "settings"),
    [
        (Rescheduling(POLICY), ()),
        (Rescheduling(POLICY, schedule="@daily", evicts=True), ("schedule=@daily", "dryRun=false")),
        (Rescheduling(POLICY, interval="5m"), ("mode=Deployment",)),
        (
            Rescheduling(POLICY, interval="90s", evicts=True),
            ("mode=Deployment", "interval=90s", "dryRun=false"),
        ),
    ],
)
def test_the_rescheduler_is_that_of_the_command_line(
    helm: Helm, wanted: Rescheduling, settings: tuple[str, ...]
) -> None:
    expected = by_place(chosen(Choice(namespace="gpus", rescheduling=wanted)))
    expected.pop(("Namespace", "gpus"))
    found = helm.template(
        "reschedule.enabled=true",
        *(f"reschedule.{each}" for each in settings),
        literal=f"reschedule.policy={POLICY}",
        namespace="gpus",
    )
    made = by_place(found)
    # helm writes the text without the line break at its end
    policy = made[("ConfigMap", "claimctl-rescheduler")]["data"]
    policy["policy.yaml"] = f"{policy['policy.yaml'].rstrip()}\n"
    assert made == expected


@pytest.mark.parametrize(("mode", "kind"), [("CronJob", "CronJob"), ("Deployment", "Deployment")])
def test_values_reach_the_rescheduler(helm: Helm, mode: str, kind: str) -> None:
    found = helm.template(
        "reschedule.enabled=true",
        f"reschedule.mode={mode}",
        "reschedule.args={--skip-unsupported}",
        "reschedule.nodeFence=false",
        "image.repository=registry.example.com/claimctl",
        "imagePullSecrets[0].name=secret",
        "env[0].name=A,env[0].value=b",
        "tolerations[0].key=gpu",
        "podAnnotations.note=x",
        "podLabels.team=gpus",
        r"nodeSelector.kubernetes\.io/os=linux",
    )
    assert "ValidatingAdmissionPolicy" not in [each["kind"] for each in found]
    document = by_place(found)[(kind, "claimctl-rescheduler")]
    spec = document["spec"].get("jobTemplate", document)["spec"]
    pod = spec["template"]
    [container] = pod["spec"]["containers"]
    assert container["args"][-2:] == ["--dry-run", "--skip-unsupported"]
    assert container["image"].startswith("registry.example.com/claimctl:")
    assert container["env"][-1] == {"name": "A", "value": "b"}
    assert [each["key"] for each in pod["spec"]["tolerations"]] == ["CriticalAddonsOnly", "gpu"]
    assert pod["spec"]["imagePullSecrets"] == [{"name": "secret"}]
    assert pod["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert (pod["metadata"]["annotations"]["note"], pod["metadata"]["labels"]["team"]) == (
        "x",
        "gpus",
    )


def test_alerts_link_to_where_the_pages_are(helm: Helm) -> None:
    url = "https://docs.example.com/{alert}/"
    rules = ("PrometheusRule", "claimctl")
    expected = by_place(chosen(Choice(("monitoring",), runbook_url=url)))[rules]
    found = helm.template("monitoring.enabled=true", literal=f"monitoring.runbookUrl={url}")
    assert by_place(found)[rules] == expected


def test_parts_can_be_left_out(helm: Helm) -> None:
    found = [place(each) for each in helm.template("crds.enabled=false", "templates.enabled=false")]
    assert ("ClusterRole", "claimctl-controller") in found
    assert "CustomResourceDefinition" not in [kind for kind, _ in found]
    assert ("ClusterRole", "claimctl-templates") not in found


def test_pods_do_not_wait_for_claims_that_the_controller_may_not_make(helm: Helm) -> None:
    settings = ("--set", "stickyClaims.enabled=true,templates.enabled=false")
    done = helm.run("template", "claimctl", str(CHART), *settings)
    assert (done.returncode, "Set templates.enabled=true" in done.stderr) == (1, True)


def test_values_reach_the_controller(helm: Helm) -> None:
    found = helm.template(
        "image.repository=registry.example.com:5000/gpus/claimctl",
        f"image.digest=sha256:{'a' * 64}",
        "templateInjection.enabled=true",
        "args={--settle-seconds=10,--log-level=debug}",
        "env[0].name=OTEL_EXPORTER_OTLP_ENDPOINT,env[0].value=http://collector:4318",
        "priorityClassName=system-cluster-critical",
        "podAnnotations.note=x",
        "podLabels.team=gpus",
        "replicas=1",
        "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight=1",
    )
    deployment = by_place(found)[("Deployment", "claimctl-controller")]
    pod = deployment["spec"]["template"]
    [container] = pod["spec"]["containers"]
    assert container["image"] == f"registry.example.com:5000/gpus/claimctl@sha256:{'a' * 64}"
    assert container["args"][-3:] == [
        "--allow-template-injection",
        "--settle-seconds=10",
        "--log-level=debug",
    ]
    values = {each["name"]: each.get("value") for each in container["env"]}
    assert values["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://collector:4318"
    assert (deployment["spec"]["replicas"], pod["spec"]["priorityClassName"]) == (
        1,
        "system-cluster-critical",
    )
    assert (pod["metadata"]["annotations"], pod["metadata"]["labels"]["team"]) == (
        {"note": "x"},
        "gpus",
    )
    assert list(pod["spec"]["affinity"]) == ["nodeAffinity"]
    assert ("ClusterRoleBinding", "claimctl-template-injection") in by_place(found)


def test_the_hooks_run_commands_that_claimctl_takes(helm: Helm) -> None:
    from claimctl.cli.main import load
    from claimctl.cli.registry import entry_of

    rendered = helm("template", "claimctl", str(CHART), "-n", "gpus")
    hooks = [
        each
        for each in documents(rendered)
        if "helm.sh/hook" in (each["metadata"].get("annotations") or {})
    ]
    pods = [each["spec"] for each in hooks if each["kind"] == "Pod"]
    pods += [each["spec"]["template"]["spec"] for each in hooks if each["kind"] == "Job"]
    commands = [pod["containers"][0]["args"] for pod in pods]
    called = [entry for arguments in commands if (entry := entry_of(arguments)) is not None]
    assert sorted(entry.name for entry in called) == ["doctor", "uninstall prepare"]
    for entry, arguments in zip(called, commands, strict=True):
        flags = arguments[len(entry.name.split()) :]
        parameters = load(entry).make_context(entry.name, flags).params
        assert parameters.get("lease_namespace", "gpus") == "gpus"
    assert {each["metadata"].get("namespace", "gpus") for each in hooks} == {"gpus"}


def test_limits_reach_the_configmap(helm: Helm) -> None:
    settings = ("limits.enabled=true", "limits.values.retentionPolicies=Manual")
    config = by_place(helm.template(*settings, namespace="gpus"))[("ConfigMap", "claimctl-limits")]
    assert config["data"] == {"retentionPolicies": "Manual"}


def test_it_is_linted(helm: Helm) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("replicas=two", "replicas"),
        ("replicas=11", "replicas"),
        ("image.pullPolicy=Sometimes", "pullPolicy"),
        ("image.digest=abc", "digest"),
        ("image.repository=", "repository"),
        ("image.repository=claimctl:latest", "repository"),
        ("crds=false", "crds"),
        ("monitoring.enabled=yes", "monitoring"),
        ("logFormat=xml", "logFormat"),
        ("args={log-level=debug}", "args"),
        ("admissionPolicy.action=Shout", "action"),
        ("uninstall.timeoutSeconds=1", "timeoutSeconds"),
        ("reschedule.mode=Job", "mode"),
        ("reschedule.interval=5 minutes", "interval"),
        ("reschedule.policy=x", "policy"),
        ("reschedule.dryrun=false", "dryrun"),
        ("replica=3", "replica"),
        ("image.name=x", "name"),
    ],
)
def test_wrong_values_are_refused_by_their_name(helm: Helm, setting: str, words: str) -> None:
    done = helm.run("template", "claimctl", str(CHART), "--set", setting)
    assert done.returncode == 1
    assert "values don't meet the specifications of the schema" in done.stderr
    assert words in done.stderr
