"""No module of the product imports itself by way of others, not even for its annotations."""

from __future__ import annotations

from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("commands", "controller", "downgrade", "kube", "reservation", "wire")


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph("claimctl", exclude_type_checking_imports=False)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_imports_go_in_a_circle(imports: grimp.ImportGraph, package: str) -> None:
    modules = imports.find_descendants(f"claimctl.{package}")
    assert modules
    TopologicalSorter(
        {each: imports.find_modules_directly_imported_by(each) & modules for each in modules}
    ).prepare()


def test_the_witness_knows_the_shapes_and_nothing_else_of_the_product() -> None:
    """The contract names what is forbidden, so it has to name everything else."""
    graph = grimp.build_graph("claimctl_witness", "claimctl")
    witness = graph.find_descendants("claimctl_witness")
    known = {name for each in witness for name in graph.find_modules_directly_imported_by(each)}
    assert witness
    assert {name for name in known - witness if not name.startswith("claimctl.wire.")} == set()
    contract = (ROOT / ".importlinter").read_text(encoding="utf-8").split("[importlinter:")
    [forbidden] = [part.split() for part in contract if part.startswith("contract:witness]")]
    assert graph.find_children("claimctl") - {"claimctl.__main__", "claimctl.wire"} <= set(
        forbidden
    )


def test_every_module_of_the_pipeline_has_its_layer() -> None:
    """A contract says nothing of a module of which it names neither file nor package."""
    contracts = set((ROOT / ".importlinter").read_text(encoding="utf-8").split())
    for package in ("controller", "reservation"):
        for path in sorted((ROOT / "claimctl" / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            packages = {".".join(parts[:end]) for end in range(3, len(parts) + 1)}
            assert path.name == "__init__.py" or packages & contracts, path
