"""What naming the package loads."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_package_and_its_errors_loads_no_http_client() -> None:
    program = (
        "import sys, claimctl.kube, claimctl.kube.errors;"
        "print([m for m in ('aiohttp', 'kubernetes', 'pydantic') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
