"""Where tests and their helpers are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from claimctl.cli import registry

TESTS = Path(__file__).parents[1]
DEMO = TESTS.parent / "claimctl-demo"


def imported(path: Path) -> Iterator[str]:
    """The full names of all modules and names that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_no_module_imports_from_a_test_module() -> None:
    """Helpers are in tests/support, or in a module of their folder that is no test module."""
    folders = (TESTS, TESTS.parent / "labs", DEMO)
    paths = [path for folder in folders for path in folder.rglob("*.py")]
    from_tests = [
        f"{path.relative_to(TESTS.parent)} imports {name}"
        for path in sorted(paths)
        for name in imported(path)
        if name.startswith(("claimctl_demo_tests.", "claimctl_witness_tests.", "labs.", "tests."))
        and any(part.startswith("test_") for part in name.split("."))
    ]
    assert from_tests == []


DECIDING = (
    "commands/claims",
    "commands/doctor",
    "commands/downgrade",
    "commands/drivers",
    "commands/orphans",
    "commands/uninstall",
    "controller",
    "downgrade",
    "kube",
    "reservation",
)
"""The packages whose modules decide something. A module has its tests in a file of its name."""
COMMANDS = {f"{entry.module.replace('.', '/')}.py" for entry in registry.COMMANDS}
"""The files with the flags of commands. Their tests, and those of the work beside them, are in
files of their names, or in e2e/test_every_command.py, which plays every command."""
PRINTING = (
    "commands/claims/claim_document.py",
    "commands/claims/claim_list.py",
    "commands/claims/pod_document.py",
    "commands/claims/workload_document.py",
    "commands/drivers/documents.py",
    "commands/claims/explain_text.py",
    "claimctl_reschedule/command/",
)
"""What only prints; the tests of the commands read it."""
WITNESS = "claimctl_witness"
"""The same, outside of the product."""
RESCHEDULE = "claimctl_reschedule"
"""A house of its own, whose tests are in it."""
NO_TESTS_OF_ITS_NAME = {
    "claimctl_witness/world.py": "the tests of the witness read every history by it",
    "controller/group_snapshots.py": "it only copies: reconcilers/test_pod_group.py",
    "controller/keys.py": "names only",
    "controller/parts.py": "wiring, used by controller/test_manager.py",
    "commands/drivers/leftovers.py": "e2e/test_driver_check.py: a kill at each write",
    "commands/drivers/start_watch.py": "test_signs.py decides; e2e/test_driver_check_habits.py",
    "commands/drivers/trying.py": "e2e/test_driver_check_habits.py",
    "kube/connection.py": "login/test_connection.py, and test_transport.py with each setting",
    "kube/clock.py": "three lines, used by all tests on a virtual clock",
    "kube/request.py": "test_client.py tests each request by the client's methods",
    "commands/doctor/model.py": "data only",
    "commands/downgrade/flags.py": "data only",
    "commands/orphans/model.py": "data only",
    "claimctl_reschedule/run/closings.py": "e2e/test_taints.py",
    "claimctl_reschedule/run/execution.py": "e2e/test_execution.py",
    "claimctl_reschedule/run/pod_watch.py": "e2e/test_execution.py: waves",
    "claimctl_reschedule/run/observing.py": "it only reads: e2e/test_run.py",
    "claimctl_reschedule/policyfile/checks.py": "policyfile/test_reading.py: a table of all faults",
    "claimctl_reschedule/run/reallocating.py": "e2e/test_requests.py: kills",
    "claimctl_reschedule/run/run.py": "e2e/test_run.py",
    "claimctl_reschedule/run/signs.py": "e2e/test_run.py: Events",
    "claimctl_reschedule/run/steps.py": "data only",
    "claimctl_reschedule/shapes/devices.py": "data only",
    "claimctl_reschedule/run/taints.py": "e2e/test_taints.py: a kill at each write",
    "claimctl_reschedule/run/waking.py": "e2e/test_unplaceable.py",
    "claimctl_reschedule/plan/observed.py": "data only",
    "claimctl_reschedule/plan/policy.py": "data only",
    "reservation/facts/decision.py": "data only",
    "reservation/facts/reasons.py": "names only",
    "reservation/facts/memory.py": "data only",
    "commands/uninstall/model.py": "data only",
    "commands/uninstall/run.py": "e2e/test_uninstall.py: with a controller and without",
    "commands/uninstall/scan.py": "it only reads: e2e/test_uninstall.py",
}
"""Why a module has no test file of its name, and where it is tested."""
NO_MODULE_OF_ITS_NAME = {
    "kube/test_field_selectors.py": "the API server's part: the CRD",
    "kube/test_embedded_server.py": "several modules together against an embedded server",
    "kube/test_package.py": "what the import of the package loads",
}


@cache
def modules() -> set[str]:
    root = TESTS.parent
    paths = [path for package in DECIDING for path in (root / "claimctl" / package).rglob("*.py")]
    names = {str(path.relative_to(root / "claimctl")) for path in paths}
    names |= {str(path.relative_to(DEMO)) for path in (DEMO / WITNESS).rglob("*.py")}
    house = root / "claimctl-reschedule"
    names |= {str(path.relative_to(house)) for path in (house / RESCHEDULE).rglob("*.py")}
    return {name for name in names if Path(name).name != "__init__.py"}


@cache
def files_of_tests() -> set[str]:
    unit = TESTS / "unit"
    paths = (path for package in DECIDING for path in (unit / package).rglob("test_*.py"))
    tests = {str(path.relative_to(unit)) for path in paths}
    witness = (DEMO / f"{WITNESS}_tests").rglob("test_*.py")
    house = TESTS.parent / "claimctl-reschedule" / f"{RESCHEDULE}_tests"
    of_house = (
        path.relative_to(house)
        for path in house.rglob("test_*.py")
        if not path.is_relative_to(house / "e2e")
    )
    tests |= {f"{RESCHEDULE}/{path}" for path in of_house}
    return tests | {f"{WITNESS}/{path.name}" for path in witness}


def test_each_module_that_decides_has_a_test_file_of_its_name() -> None:
    wanted = {name: str(Path(name).with_name(f"test_{Path(name).name}")) for name in modules()}
    without = {
        name
        for name, test in wanted.items()
        if test not in files_of_tests()
        and f"claimctl/{name}" not in COMMANDS
        and not name.startswith(PRINTING)
        and not name.endswith("work.py")
    }
    assert without == NO_TESTS_OF_ITS_NAME.keys()


def test_each_test_file_has_the_name_of_a_module() -> None:
    """A file for one topic adds it to the name: ``test_<module>_<topic>.py``."""

    def tested(test: str) -> set[str]:
        words = Path(test).stem.split("_")[1:]
        names = ("_".join(words[:end]) for end in range(1, len(words) + 1))
        return {str(Path(test).with_name(f"{name}.py")) for name in names} & modules()

    assert {test for test in files_of_tests() if not tested(test)} == NO_MODULE_OF_ITS_NAME.keys()
