"""helm as a process. It is on PATH, or HELM names it; without it these tests are skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "claimctl"
HELM = (
    os.environ.get("HELM")
    or shutil.which("helm")
    or shutil.which("helm", path=str(Path(sys.prefix) / "bin"))
    or ""
)
needs_helm = pytest.mark.skipif(
    not HELM, reason="there is no helm on this machine (`make helm` gets one)"
)
SECONDS = 120
Json = dict[str, Any]


@dataclass(frozen=True)
class Helm:
    """helm with a home of its own, and a kubeconfig if there is a cluster."""

    home: Path
    kubeconfig: Path | None = None

    def run(self, *arguments: str, seconds: float = SECONDS) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [HELM, *arguments],
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("HELM")}
        where = str(self.kubeconfig or self.home / "none")
        return {**kept, "HOME": str(self.home), "KUBECONFIG": where}

    def __call__(self, *arguments: str) -> str:
        """What helm prints; the test fails when helm does."""
        done = self.run(*arguments)
        assert done.returncode == 0, f"helm {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def template(
        self, *settings: str, namespace: str = "claimctl-system", literal: str = ""
    ) -> list[Json]:
        """The documents of the chart with ``--set`` settings, without those of hooks."""
        flags = [flag for each in settings for flag in ("--set", each)]
        flags += ["--set-literal", literal] if literal else []
        text = self("template", "claimctl", str(CHART), "-n", namespace, "--no-hooks", *flags)
        return list(documents(text))


def documents(text: str) -> Iterator[Json]:
    for document in yaml.safe_load_all(text):
        if document is not None:
            yield document
