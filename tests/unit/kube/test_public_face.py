"""What the package exports, and what merely naming it loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

import claimctl.kube


def test_everything_exported_has_a_home_and_is_what_it_is_called() -> None:
    assert sorted(claimctl.kube.__all__) == sorted(claimctl.kube._HOMES)
    found = {name: getattr(claimctl.kube, name).__name__ for name in claimctl.kube.__all__}
    assert found == {name: name for name in claimctl.kube.__all__}


def test_what_is_not_exported_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Sender'"):
        _ = claimctl.kube.Sender


def test_importing_the_package_and_its_errors_loads_no_http_client() -> None:
    program = (
        "import sys, claimctl.kube, claimctl.kube.errors;"
        "print([m for m in ('aiohttp', 'kubernetes', 'pydantic') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
