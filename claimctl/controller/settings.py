"""What can be set about a controller, checked before anything starts."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from claimctl.reservation.snapshot import Rules


class BadSettings(Exception):
    """A setting that makes no sense; the text names it in one line."""


class Settings(BaseModel):
    """Settings of one controller process. Durations in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    identity: str = Field(min_length=1, max_length=253)
    """Who this process is in the Lease and in events; differs between replicas."""
    lease_namespace: str = Field(default="claimctl-system", min_length=1, max_length=63)
    lease_name: str = Field(default="claimctl-controller", min_length=1, max_length=253)
    lease_seconds: int = Field(default=15, ge=6, le=3600)
    """After so long without a sign of life another takes over; the leader ends after two thirds."""
    leader_elect: bool = True
    dialect: Literal["auto", "native", "podgroup", "hold"] = "auto"
    settle_seconds: float = Field(default=5.0, ge=0, le=3600)
    """Longer than the scheduler's cache can lag behind the API server."""
    binding_seconds: float = Field(default=60.0, ge=0, le=3600)
    """Longer than a scheduler takes from reading a claim until it binds a pod on what it read."""
    slow_binding_seconds: float = Field(default=600.0, ge=0, le=3600)
    """The same for pods with a PersistentVolumeClaim or of a gang, and pods of other schedulers."""
    known_schedulers: frozenset[str] = frozenset({"default-scheduler"})
    """``schedulerName`` of the schedulers that are given ``binding_seconds`` only."""
    dead_reference_seconds: float = Field(default=10.0, ge=0, le=3600)
    """How long the cluster's own controller may take to remove a dead pod's reference."""
    allow_template_injection: bool = False
    """Whether pod templates that ask for it are given a PodGroup (needs a role of its own)."""
    workers: int = Field(default=4, ge=1, le=64)
    """Claims that are worked on at the same time."""
    batch_seconds: float = Field(default=0.2, ge=0, le=60)
    """Changes of a claim within this time are answered together."""
    sync_timeout_seconds: float = Field(default=120.0, gt=0)
    """How long the first lists may take before the start has failed."""
    drain_seconds: float = Field(default=10.0, gt=0, le=600)
    """How long work that has begun may take to end after a stop."""

    @classmethod
    def checked(cls, **values: object) -> Settings:
        """Settings from flags.

        Raises:
            BadSettings: a value is out of range; names the first such setting.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(part) for part in first["loc"]).replace("_", "-")
            raise BadSettings(f"--{name}: {first['msg'].lower()}") from None

    def rules(self, dialect: str, *, kcm_cleans_mixed_lists: bool) -> Rules:
        return Rules(
            dialect=dialect,
            settle_seconds=self.settle_seconds,
            binding_seconds=self.binding_seconds,
            slow_binding_seconds=self.slow_binding_seconds,
            known_schedulers=self.known_schedulers,
            kcm_cleans_mixed_lists=kcm_cleans_mixed_lists,
            dead_reference_seconds=self.dead_reference_seconds,
        )
