"""What has to be switched on, by version."""

from __future__ import annotations

import pytest
from kube_in_process.real.servers.features import features_of, resource_api
from kube_in_process.real.servers.programs import CannotStart

DRA = "--feature-gates=DynamicResourceAllocation=true"
GROUPS = "--feature-gates=GenericWorkload=true,DRAWorkloadResourceClaims=true"


@pytest.mark.parametrize(
    ("version", "pod_groups", "expected"),
    [
        ((1, 32), False, (DRA, "--runtime-config=resource.k8s.io/v1beta1=true")),
        (
            (1, 33),
            False,
            (
                DRA,
                "--runtime-config=resource.k8s.io/v1beta1=true,resource.k8s.io/v1beta2=true",
            ),
        ),
        ((1, 34), False, ()),
        ((1, 36), False, ()),
        ((1, 36), True, (GROUPS, "--runtime-config=scheduling.k8s.io/v1alpha2=true")),
        ((1, 37), True, (GROUPS, "--runtime-config=scheduling.k8s.io/v1beta1=true")),
        ((1, 38), True, (GROUPS, "--runtime-config=scheduling.k8s.io/v1=true")),
    ],
)
def test_flags_of_the_api_server(
    version: tuple[int, int], pod_groups: bool, expected: tuple[str, ...]
) -> None:
    features = features_of(version, pod_groups=pod_groups)
    assert features.api_server_flags() == expected
    assert features.gate_flags() == expected[:1]


def test_taint_rules_are_switched_on_where_there_are_any() -> None:
    features = features_of((1, 36), taint_rules=True)
    assert features.api_server_flags() == (
        "--feature-gates=DRADeviceTaintRules=true",
        "--runtime-config=resource.k8s.io/v1beta2=true",
    )
    assert features.scheduler_flags() == ()
    assert features_of((1, 36), taint_rules=True, pod_groups=True).scheduler_flags() == (GROUPS,)
    assert features_of((1, 35), taint_rules=True) == features_of((1, 35))


def test_groups_are_refused_where_there_are_none() -> None:
    with pytest.raises(CannotStart, match=r"1\.35 has no PodGroups for claims; 1\.36 or newer"):
        features_of((1, 35), pod_groups=True)


def test_the_newest_api_that_is_served() -> None:
    assert [resource_api((1, minor)) for minor in (32, 33, 34, 36)] == [
        "v1beta1",
        "v1beta2",
        "v1",
        "v1",
    ]
