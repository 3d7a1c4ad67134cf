"""The API claimctl.io/v1alpha1: pydantic models, and the CRDs generated from them.

``python -m claimctl.api`` writes ``crds/``; with ``--check`` it fails if they are stale.
"""

from claimctl.api.claimreservation import ClaimReservation
from claimctl.api.definitions import custom_resource_definitions
from claimctl.api.downgradeplan import DowngradePlan
from claimctl.api.reschedulerecord import RescheduleRecord

__all__ = ["ClaimReservation", "DowngradePlan", "RescheduleRecord", "custom_resource_definitions"]
