"""The scenarios have the clusters of claimctl's scenarios, embedded and real."""

from tests.e2e.conftest import _cluster, new_stage, pytest_collection_modifyitems, stage

__all__ = ["_cluster", "new_stage", "pytest_collection_modifyitems", "stage"]
