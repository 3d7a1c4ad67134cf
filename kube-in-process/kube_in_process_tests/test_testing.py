"""The cluster in a thread, and the fixture of pytest, as a reader of the README meets them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.storage.requests import Fault
from kube_in_process.testing import NotInTime, ServedCluster, served

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def nodes(cluster: ServedCluster) -> int:
    with urlopen(f"{cluster.url}/api/v1/nodes") as answer:
        return len(json.load(answer)["items"])


@pytest.mark.kube_cluster(ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD, nodes=5))
def test_the_mark_says_what_cluster(kube_cluster: ServedCluster) -> None:
    assert nodes(kube_cluster) == 5
    assert kube_cluster.url in kube_cluster.kubeconfig.read_text()


def test_a_fault_is_set_from_the_test(kube_cluster: ServedCluster) -> None:
    kube_cluster.call(lambda each: each.fault_requests(lambda point: Fault(status=503)))
    with pytest.raises(HTTPError, match="503"):
        nodes(kube_cluster)


def test_an_error_of_a_call_reaches_the_test(kube_cluster: ServedCluster) -> None:
    with pytest.raises(KeyError):
        kube_cluster.call(lambda each: each.admin.api.kinds.named("unknown"))


def test_a_wait_ends(kube_cluster: ServedCluster) -> None:
    with pytest.raises(NotInTime):
        kube_cluster.wait_until(lambda: False, seconds=0.01)


def test_a_failed_component_fails_the_test(tmp_path: Path) -> None:
    error = ValueError("planted")
    with pytest.raises(ExceptionGroup), served(tmp_path) as cluster:
        cluster.call(lambda each: each.failures.append(error))


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_examples_of_the_readme_run(number: int, tmp_path: Path) -> None:
    text = BLOCKS[number]
    if "def test_" not in text and "def story" not in text:
        text = f"def test_it(kube_cluster):\n{re.sub('^', '    ', text, flags=re.MULTILINE)}"
    if "def story" in text:
        text = f"def test_it():\n{re.sub('^', '    ', text, flags=re.MULTILINE)}"
    imports = "import pytest\nfrom kube_in_process.options import ClusterOptions\n"
    (tmp_path / "test_readme.py").write_text(imports + text)
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path))
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
