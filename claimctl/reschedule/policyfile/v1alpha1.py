"""DeschedulerPolicy (descheduler/v1alpha1): the policy file of 2018, with strategies."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from claimctl.reschedule.policyfile.v1alpha2 import Number, PolicyModel, Thresholds

V1ALPHA1 = "descheduler/v1alpha1"
ON_BY_DEFAULT = ("RemoveDuplicates", "LowNodeUtilization")
"""The strategies of 2018 that claimctl has. They are on unless the file switches them off."""


class UtilizationThresholds(PolicyModel):
    thresholds: Thresholds = Field(default_factory=dict)
    target_thresholds: Thresholds = Field(default_factory=dict)
    number_of_nodes: Number = 0


class StrategyParams(PolicyModel):
    node_resource_utilization_thresholds: UtilizationThresholds | None = None


class Strategy(PolicyModel):
    """``params`` is read only for the strategies that claimctl has."""

    enabled: bool = True
    """'All strategies are enabled by default', says the description of 2018."""
    weight: Number = 0
    """Read and not used, as by the descheduler."""
    params: dict[str, Any] | None = None


class DeschedulerPolicyV1Alpha1(PolicyModel):
    """The whole file."""

    api_version: Literal["descheduler/v1alpha1"]
    kind: Literal["DeschedulerPolicy"]
    strategies: dict[str, Strategy] = Field(default_factory=dict)
