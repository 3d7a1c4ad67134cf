"""The values of the Helm chart: ``values.schema.json`` and the defaults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from generate.chart import CHART

Name = Annotated[str, Field(pattern=r"^$|^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
Objects = list[dict[str, Any]]
LimitKey = Literal[
    "maxIdleTimeoutSeconds",
    "maxForceDeletedPodGraceSeconds",
    "minForceDeletedPodGraceSeconds",
    "retentionPolicies",
    "contact",
]


class Values(BaseModel):
    """Refuses what it does not name, so that a misspelt value is no silent default."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ImageValues(Values):
    """The image of the controller and of the hooks."""

    repository: Annotated[str, Field(min_length=1, pattern=r"^[^\s:@]+(:[0-9]+/[^\s:@]+)?$")]
    tag: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]*$", max_length=128)]
    digest: Annotated[str, Field(pattern=r"^$|^sha256:[0-9a-f]{64}$")]
    pullPolicy: Literal["Always", "IfNotPresent", "Never"]


class SwitchValues(Values):
    enabled: bool


class Monitoring(SwitchValues):
    runbookUrl: Annotated[str, Field(pattern=r"^$|^https?://\S*\{alert\}\S*$")]


class AdmissionPolicy(SwitchValues):
    action: Literal["Warn", "Deny", "Audit"]


class Limits(SwitchValues):
    values: dict[LimitKey, str]


class Reschedule(SwitchValues):
    mode: Literal["CronJob", "Deployment"]
    schedule: Annotated[str, Field(min_length=1)]
    interval: Annotated[str, Field(pattern=r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$")]
    dryRun: bool
    nodeFence: bool
    avoidance: bool
    policy: Annotated[str, Field(pattern="DeschedulerPolicy")]
    args: list[Annotated[str, Field(pattern="^--")]]
    resources: dict[str, Any]


class UninstallValues(SwitchValues):
    timeoutSeconds: Annotated[int, Field(ge=10, le=3600)]


class Chart(Values):
    """All values of the chart."""

    replicas: Annotated[int, Field(ge=0, le=10)]
    image: ImageValues
    imagePullSecrets: Objects
    logFormat: Literal["json", "human", "auto"]
    args: list[Annotated[str, Field(pattern="^--")]]
    env: Objects
    resources: dict[str, Any]
    podAnnotations: dict[str, str]
    podLabels: dict[str, str]
    nodeSelector: dict[str, str]
    tolerations: Objects
    affinity: dict[str, Any]
    priorityClassName: Name
    crds: SwitchValues
    templates: SwitchValues
    templateInjection: SwitchValues
    monitoring: Monitoring
    networkPolicy: SwitchValues
    admissionPolicy: AdmissionPolicy
    podDeletion: SwitchValues
    stickyClaims: SwitchValues
    limits: Limits
    workloads: SwitchValues
    reschedule: Reschedule
    uninstall: UninstallValues
    global_: Annotated[dict[str, Any], Field(alias="global")] = {}


def schema() -> dict[str, Any]:
    """The JSON Schema of the values."""
    made = Chart.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_plain(made)}


def _plain(value: Any) -> Any:
    """The schema without titles and without what its classes say about themselves."""
    if isinstance(value, dict):
        dropped = {"title"} if isinstance(value.get("title"), str) else set()
        return {key: _plain(each) for key, each in value.items() if key not in dropped}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def rendered() -> dict[Path, str]:
    """The schema, by its path in the repository."""
    return {CHART / "values.schema.json": json.dumps(schema(), indent=2) + "\n"}
