from __future__ import annotations

import json
import subprocess
import sys


def test_the_benchmark_keeps_the_tenth_of_the_pods_that_names_a_claim() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench", "--pods", "1200", "--only", "cache"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    measured = json.loads(done.stdout)["cache"]
    assert (measured["pods"], measured["kept"]) == (1200, 120)
