"""The settings of a controller, checked before anything starts."""

from __future__ import annotations

from enum import StrEnum
from math import inf
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from claimctl.reservation.facts.snapshot import Rules
from claimctl.wire.releases import FROM_1_34, FROM_1_36, FROM_1_38, Release


class BadSettings(Exception):
    """A setting is not valid. The message names it in one line."""


class Duty(StrEnum):
    """What a controller process does."""

    EVERYTHING = "everything"
    RETIRE = "retire"
    """It only ends what earlier controllers began, before an uninstall: it makes no
    ClaimReservations by annotation and carries out no DowngradePlan."""
    PLAN = "plan"
    """It only carries out the DowngradePlan, and ends with the command that started it. So it adds
    no hold and leaves no tombstone, which nobody would take out."""


class Settings(BaseModel):
    """Settings of one controller process. Durations are in seconds.

    ``Rules`` says what the fields mean that it has, too.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    identity: str = Field(min_length=1, max_length=253)
    """The identity of this process in the Lease and in Events; each replica has its own."""
    container: str = ""
    """How the identities of the processes begin that run in this process's container, one after the
    other; '' if that is not known."""
    lease_namespace: str = Field(default="claimctl-system", min_length=1, max_length=63)
    lease_name: str = Field(default="claimctl-controller", min_length=1, max_length=253)
    lease_seconds: int = Field(default=15, ge=6, le=3600)
    """After this time without a renewal, another replica takes over. The leader ends its work after
    two thirds of it."""
    leader_elect: bool = True
    dialect: Literal["auto", "native", "podgroup", "hold"] = "auto"
    settle_seconds: float = Field(default=5.0, ge=0, le=3600)
    binding_seconds: float = Field(default=60.0, ge=0, le=3600)
    slow_binding_seconds: float = Field(default=600.0, ge=0, le=3600)
    known_schedulers: frozenset[str] = frozenset({"default-scheduler"})
    dead_reference_seconds: float = Field(default=10.0, ge=0, le=3600)
    max_seconds_without_pods: float = Field(default=inf, gt=0)
    """For how long a claim may be held while no pod uses it; infinite means without a limit."""
    one_pod_drivers: frozenset[str] = frozenset()
    """Drivers that want one pod in a claim's list, besides those that claimctl knows."""
    list_ahead: bool = True
    crowd: int = Field(default=50, ge=0)
    checkpoint: bool = True
    """Whether the leader notes a checkpoint in the Lease, from which its successor goes on."""
    allow_template_injection: bool = False
    """Whether claimctl adds a PodGroup to pod templates that ask for it (needs another role)."""
    duty: Duty = Duty.EVERYTHING
    """What this process does."""
    namespaces: frozenset[str] = frozenset()
    """The namespaces whose objects this process reconciles; empty means all."""
    workers: int = Field(default=16, ge=1, le=64)
    """The number of claims that are reconciled at the same time."""
    batch_seconds: float = Field(default=0.2, ge=0, le=60)
    """Changes of a claim within this time lead to one reconcile."""
    drain_seconds: float = Field(default=10.0, gt=0, le=600)
    """How long a reconcile that has begun may take to end after a stop."""

    @classmethod
    def checked(cls, **values: object) -> Settings:
        """Make settings from flags.

        Raises:
            BadSettings: a value is out of range. The message names the first such setting.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(part) for part in first["loc"]).replace("_", "-")
            name = "reservation-mode" if name == "dialect" else name
            raise BadSettings(f"--{name}: {first['msg'].lower()}") from None

    def rules(self, dialect: str, version: Release) -> Rules:
        """The rules for a cluster of this dialect and of this version of its API server."""
        return Rules(
            dialect=dialect,
            settle_seconds=self.settle_seconds,
            binding_seconds=self.binding_seconds,
            slow_binding_seconds=self.slow_binding_seconds,
            known_schedulers=self.known_schedulers,
            kcm_cleans_mixed_lists=version >= FROM_1_36,
            kcm_looks_at_claims=version >= FROM_1_34,
            kcm_lists_finished_pods=version < FROM_1_38,
            dead_reference_seconds=self.dead_reference_seconds,
            max_seconds_without_pods=self.max_seconds_without_pods,
            one_pod_drivers=Rules().one_pod_drivers | self.one_pod_drivers,
            makes_reservations=self.duty is Duty.EVERYTHING,
            list_ahead=self.list_ahead,
            crowd=self.crowd,
        )
