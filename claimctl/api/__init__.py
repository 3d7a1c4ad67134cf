"""The API claimctl.io/v1alpha1: pydantic models, and the CRDs generated from them.

``python -m claimctl.api`` writes ``crds/``; with ``--check`` it fails if they are stale.
"""

from claimctl.api.claimreservation import ClaimReservation
from claimctl.api.definitions import custom_resource_definitions
from claimctl.api.downgradeplan import DowngradePlan

__all__ = ["ClaimReservation", "DowngradePlan", "custom_resource_definitions"]
