"""The commands of docs/runbooks/alerts, word for word, on a cluster in which claimctl runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from claimctl.commands.install.apply import Installer
from claimctl.commands.install.components import Choice, chosen
from claimctl.kube.clock import LoopClock
from tests.chart.containers import IMAGE
from tests.chart.sites import ChartSite, site
from tests.e2e.runbooks import run
from tests.monitoring.rules import PAGES
from tests.support.runbooks import sections

LEASE = ("coordination.k8s.io/v1", "Lease")


@pytest.mark.real_time(600)
async def test_every_command_of_every_page(tmp_path: Path) -> None:
    async with site("embedded", tmp_path) as cluster:
        await _install(cluster)
        for page in sorted(PAGES.glob("*.md")):
            for section in sections(page.name, PAGES).values():
                for command in section.commands:
                    answer = await run(command.text, cluster.kubeconfig)
                    where = f"{page.name}:{command.line}: {command.text}"
                    assert answer.code == command.exit_code, f"{where}: {answer}"


async def _install(cluster: ChartSite) -> None:
    """Install claimctl, and wait until a controller leads."""
    documents = chosen(Choice(image=f"{IMAGE}:1"))
    await Installer(cluster.client.transport, LoopClock()).apply(documents)
    await cluster.until(lambda: _leads(cluster), "a controller leads")
    await cluster.train()
    await cluster.until(cluster.held, "the claim is held")


async def _leads(cluster: ChartSite) -> bool:
    leases = await cluster.client.list(LEASE, "claimctl-system")
    return any(lease["spec"].get("holderIdentity") for lease in leases)
