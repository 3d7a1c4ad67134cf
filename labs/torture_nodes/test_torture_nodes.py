"""The flags and the report of torture-nodes."""

from __future__ import annotations

import pytest
from kube_in_process.device_witness import DeviceFault

from labs.torture_nodes.lab import main, parser
from labs.torture_nodes.report import NodesTally, TortureNodesOptions, report


def options(*flags: str) -> TortureNodesOptions:
    return TortureNodesOptions(**vars(parser().parse_args(flags)))


def test_claimctl_holds_and_everything_is_killed_unless_the_flags_say_otherwise() -> None:
    assert options().hold
    assert options().killed == ("kubelet", "driver", "claimctl")
    assert not options("--hold", "0").hold
    assert not options().guard
    assert options("--guard", "1").guard
    assert options("--kills", "none").killed == ()
    assert options("--kills", "driver").killed == ("driver",)


def test_a_wrong_kind_to_kill_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--kills", "kubelet,etcd"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines() == [
        "torture-nodes: --kills: 'etcd' is none of kubelet, driver, claimctl, none"
    ]


def test_without_programs_the_lab_is_skipped_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", "/nowhere")
    assert main([]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("torture-nodes: skipped: ")


def test_the_report_counts_faults_and_names_the_longest() -> None:
    faults = [
        DeviceFault("DeallocatedInUse", "team/a", "node-0/dev-0", 1.0, 2.5),
        DeviceFault("PreparedTwice", "team/a and team/b", "node-0/dev-0", 2.0, 1.5),
        DeviceFault("AllocatedTwice", "team/c and team/d", "node-0/dev-1", 3.0, 9.0),
        DeviceFault("RanUnprepared", "team/a in team/p", "node-0/dev-0", 4.0, 8.0),
    ]
    tally = NodesTally(claims=3, actions={"create": 3}, kills={"driver": 2}, faults=faults)
    text = "\n".join(report(options("--hold", "0", "--seed", "7"), "v1.36.2", tally))
    assert "the cluster alone, SEED=7 BUDGET=150" in text
    assert "2 (1 DeallocatedInUse, 1 PreparedTwice)" in text
    assert "1 AllocatedTwice" in text
    assert "1 RanUnprepared" in text
    assert "2.5 s" in text
    assert "9.0 s" not in text.partition("fault:")[0]
    assert "fault: DeallocatedInUse: node-0/dev-0 of team/a, for 2.5 s" in text
