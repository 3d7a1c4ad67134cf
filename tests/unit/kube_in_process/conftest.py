"""The cluster of these tests, as the tests of the package itself have it."""

from __future__ import annotations

from kube_in_process_tests.conftest import world

__all__ = ["world"]
