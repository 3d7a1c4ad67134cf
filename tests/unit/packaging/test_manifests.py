"""The files that are applied to clusters: rbac/, deploy/ and crds/ together."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from claimctl import __version__
from claimctl.cli.main import load
from claimctl.cli.registry import BY_NAME
from claimctl.controller.caches.informers import WATCHED
from claimctl.controller.preflight import (
    ACTION_RIGHTS,
    BINDING,
    GROUP_ACTION_RIGHTS,
    GROUP_WATCH_RIGHTS,
)

ROOT = Path(__file__).parents[3]
Json = dict[str, Any]


def documents(*directories: str) -> Iterator[Json]:
    for directory in directories:
        for path in sorted((ROOT / directory).glob("*.yaml")):
            if path.name != "kustomization.yaml":
                yield from yaml.safe_load_all(path.read_text())


def one(kind: str, name: str) -> Json:
    [found] = [
        each
        for each in documents("rbac", "deploy")
        if (each["kind"], each["metadata"]["name"]) == (kind, name)
    ]
    return found


def rights(*roles: Json) -> set[tuple[str, str, str]]:
    """(group, resource, verb) of all rules that are not limited to names."""
    return {
        (group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if "resourceNames" not in rule
    }


ROLES = [each for each in documents("rbac") if each["kind"] in ("ClusterRole", "Role")]


@pytest.mark.parametrize(
    "role", ROLES, ids=lambda role: f"{role['kind']}-{role['metadata']['name']}"
)
def test_no_role_has_wildcards_or_secrets_or_may_give_itself_more(role: Json) -> None:
    for group, resource, verb in rights(role):
        assert "*" not in (group, resource, verb)
        assert resource not in ("secrets", "configmaps", "serviceaccounts/token")
        assert group != "rbac.authorization.k8s.io"
        assert verb not in ("escalate", "bind", "impersonate")


def test_the_controller_changes_nothing_but_claims_and_what_is_its_own() -> None:
    written = {
        (group, resource, verb)
        for group, resource, verb in rights(one("ClusterRole", "claimctl-controller"))
        if verb not in ("get", "list", "watch")
    }
    assert written == {
        ("resource.k8s.io", "resourceclaims", "patch"),
        ("resource.k8s.io", "resourceclaims/status", "patch"),
        ("resource.k8s.io", "resourceclaims/binding", "patch"),
        ("scheduling.k8s.io", "podgroups", "create"),
        ("scheduling.k8s.io", "podgroups", "patch"),
        ("scheduling.k8s.io", "podgroups", "delete"),
        ("claimctl.io", "claimreservations", "create"),
        ("claimctl.io", "claimreservations", "patch"),
        ("claimctl.io", "claimreservations", "delete"),
        ("claimctl.io", "claimreservations/status", "patch"),
        ("claimctl.io", "downgradeplans/status", "patch"),
        ("claimctl.io", "workloadkinds/status", "patch"),
        ("events.k8s.io", "events", "create"),
        ("events.k8s.io", "events", "patch"),
    }


def test_the_controller_may_do_what_it_asks_for_at_its_start() -> None:
    granted = rights(one("ClusterRole", "claimctl-controller"))
    asked = {
        (right.group, "/".join(filter(None, (right.resource, right.subresource))), right.verb)
        for right in (*ACTION_RIGHTS, *GROUP_WATCH_RIGHTS, *GROUP_ACTION_RIGHTS, BINDING)
    } | {(each.group, each.plural, verb) for each in WATCHED for verb in ("list", "watch")}
    assert asked - granted == set()


def test_the_lease_is_the_only_one_the_controller_may_touch() -> None:
    role = one("Role", "claimctl-controller")
    assert role["metadata"]["namespace"] == "claimctl-system"
    named = [rule for rule in role["rules"] if "resourceNames" in rule]
    assert [(rule["resourceNames"], rule["verbs"]) for rule in named] == [
        (["claimctl-controller"], ["get", "patch"])
    ]


def test_template_injection_is_bound_to_nobody() -> None:
    bound = {
        each["roleRef"]["name"]
        for each in documents("rbac", "deploy")
        if each["kind"] in ("ClusterRoleBinding", "RoleBinding")
    }
    assert bound == {
        "claimctl-controller",
        "claimctl-controller-workloads",
        "claimctl-templates",
    }


def test_view_and_edit_join_the_built_in_roles_and_leave_plans_to_administrators() -> None:
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    aggregated = {
        role["metadata"]["name"]: label.removeprefix(prefix)
        for role in ROLES
        for label in role["metadata"]["labels"]
        if label.startswith(prefix)
    }
    assert aggregated == {"claimctl-view": "view", "claimctl-edit": "edit"}
    for name in aggregated:
        assert {resource for _, resource, _ in rights(one("ClusterRole", name))} <= {
            "claimreservations",
            "claimreservations/status",
        }


@pytest.mark.parametrize("directory", ["crds", "rbac", "deploy"])
def test_every_file_is_in_its_kustomization(directory: str) -> None:
    folder = ROOT / directory
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    present = {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(listed) - {"../crds", "../rbac"} == present


def test_the_controller_runs_with_nothing_it_does_not_need() -> None:
    pod = one("Deployment", "claimctl-controller")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"livenessProbe", "readinessProbe", "resources"} <= container.keys()
    assert "volumes" not in pod


def as_started(container: Json) -> list[str]:
    """The arguments with the variables that the kubelet sets."""
    metadata = {"metadata.namespace": "claimctl-system", "metadata.uid": "uid"}
    variables = {
        each["name"]: metadata[each["valueFrom"]["fieldRef"]["fieldPath"]]
        for each in container["env"]
    }
    return [
        re.sub(r"\$\((\w+)\)", lambda found: variables[found[1]], each)
        for each in container["args"]
    ]


def test_the_controllers_command_line_is_one_that_claimctl_takes() -> None:
    pod = one("Deployment", "claimctl-controller")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    name, *flags = as_started(container)
    parameters = load(BY_NAME[name]).make_context(name, flags).params
    [port] = container["ports"]
    assert parameters["bind_address"] == f":{port['containerPort']}"
    assert parameters["lease_namespace"] == "claimctl-system"
    assert parameters["pod_uid"] == "uid"
    assert parameters["drain_seconds"] < pod["terminationGracePeriodSeconds"]


def test_selectors_select_the_controllers_pods() -> None:
    deployment = one("Deployment", "claimctl-controller")
    labels = deployment["spec"]["template"]["metadata"]["labels"].items()
    assert deployment["spec"]["replicas"] == 2
    for selector in (
        deployment["spec"]["selector"]["matchLabels"],
        one("PodDisruptionBudget", "claimctl-controller")["spec"]["selector"]["matchLabels"],
        one("Service", "claimctl-controller")["spec"]["selector"],
    ):
        assert selector.items() <= labels


def test_replicas_spread_over_nodes_that_have_no_zone() -> None:
    """A node that lacks the key of one spread constraint counts for no spread constraint."""
    pod = one("Deployment", "claimctl-controller")["spec"]["template"]["spec"]
    spread = [each["topologyKey"] for each in pod["topologySpreadConstraints"]]
    [zone] = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert spread == ["kubernetes.io/hostname"]
    assert zone["podAffinityTerm"]["topologyKey"] == "topology.kubernetes.io/zone"
    for selector in (pod["topologySpreadConstraints"][0], zone["podAffinityTerm"]):
        labels = one("Deployment", "claimctl-controller")["spec"]["template"]["metadata"]["labels"]
        assert selector["labelSelector"]["matchLabels"].items() <= labels.items()


def test_the_image_has_the_version_of_the_project() -> None:
    kustomization = yaml.safe_load((ROOT / "deploy/kustomization.yaml").read_text())
    assert [image["newTag"] for image in kustomization["images"]] == [__version__]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_renders_all_of_it() -> None:
    done = subprocess.run(
        ["kubectl", "kustomize", str(ROOT / "deploy")], capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    rendered = {
        (each["kind"], each["metadata"]["name"]) for each in yaml.safe_load_all(done.stdout)
    }
    assert rendered == {
        (each["kind"], each["metadata"]["name"]) for each in documents("crds", "rbac", "deploy")
    }
