"""Revisions from what etcd's watch says, and their writers from the audit log."""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kube_in_process.real.servers.audit import AuditLog
from kube_in_process.real.servers.history import RESTORE, History, HistoryLost, restoring
from kube_in_process.storage.store import Revision

CLAIM, POD = "/registry/resourceclaims/team/slice", "/registry/pods/team/train-0"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def stored(api: str, version: int, manager: str = "kubectl") -> dict[str, Any]:
    fields = [{"manager": manager, "time": f"2026-01-01T00:00:{version:02}Z"}]
    meta = {"name": "slice", "namespace": "team", "managedFields": fields}
    return {"apiVersion": api, "kind": "X", "metadata": meta}


def event(key: str, version: int, value: dict[str, Any] | None, before: int = 0) -> dict[str, Any]:
    kv = {"key": b64(key), "mod_revision": str(version)}
    event_there: dict[str, Any] = {"kv": kv}
    if value is None:
        event_there["type"] = "DELETE"
    else:
        kv["value"] = b64(json.dumps(value))
    if before:
        old = json.dumps(stored("resource.k8s.io/v1", before))
        event_there["prev_kv"] = {"key": kv["key"], "mod_revision": str(before), "value": b64(old)}
    return event_there


REF = {"resource": "resourceclaims", "namespace": "team", "name": "slice"}


def audited(verb: str, version: str, user: str, code: int = 200, **more: Any) -> str:
    """``more`` is further metadata of the answer, or ``asked``: the version the request names."""
    asked = more.pop("asked", "")
    answer = {"name": "slice", "resourceVersion": version, **more}
    return json.dumps(
        {
            "verb": verb,
            "stage": "ResponseComplete",
            "user": {"username": user},
            "objectRef": REF,
            "responseStatus": {"code": code},
            "requestObject": {"metadata": {"resourceVersion": asked}},
            "responseObject": {"metadata": answer},
        }
    )


def begun(user: str, agent: str, at: datetime) -> str:
    """A request that was received; the API server was killed before its end."""
    return json.dumps(
        {
            "auditID": f"{user} {at}",
            "verb": "patch",
            "stage": "RequestReceived",
            "user": {"username": user},
            "userAgent": f"{agent}/1.0",
            "objectRef": REF,
            "requestReceivedTimestamp": at.isoformat(),
        }
    )


def read(
    log: Path, entries: list[str], events: list[dict[str, Any]], waited: float = 0.0
) -> History:
    log.write_text("".join(f"{entry}\n" for entry in entries))
    history = History("", AuditLog(log), {"claimctl": "the-controller"})
    history._take({"events": events})
    history._release(history._waiting[0][0] + waited if history._waiting else 0.0)
    return history


def test_a_claim_from_its_creation_to_its_end(tmp_path: Path) -> None:
    entries = [
        audited("create", "5", "anna"),
        audited("update", "7", "scheduler"),
        audited("update", "7", "somebody", 409),
        audited("patch", "7", "idle"),
        audited("delete", "9", "kcm"),
    ]
    claim = stored("resource.k8s.io/v1", 0)
    history = read(
        tmp_path / "log",
        entries,
        [event(CLAIM, 5, claim), event(CLAIM, 7, claim, 5), event(CLAIM, 9, None, 7)],
    )
    told = [
        (revision.number, revision.type, revision.actor, revision.verb)
        for revision in history.revisions
    ]
    assert told == [
        (5, "ADDED", "anna", "create"),
        (7, "MODIFIED", "scheduler", "update"),
        (9, "DELETED", "kcm", "delete"),
    ]
    last = history.revisions[-1]
    assert (last.group, last.plural) == ("resource.k8s.io", "resourceclaims")
    assert last.object()["metadata"]["resourceVersion"] == "9"
    previous = last.previous_object()
    assert previous is not None
    assert previous["metadata"]["resourceVersion"] == "7"


def test_who_takes_the_last_finalizer_off_deletes(tmp_path: Path) -> None:
    going: Any = {"deletionTimestamp": "2026-01-01T00:00:00Z", "uid": ""}
    entries = [
        audited("update", "7", "scheduler", finalizers=["a"], **going),
        audited("patch", "7", "idle", finalizers=["a"], **going),
        audited("patch", "7", "of another life", **{**going, "uid": "other"}),
        audited("update", "7", "kcm", **going),
    ]
    history = read(tmp_path / "log", entries, [event(CLAIM, 9, None, 7)])
    assert [revision.actor for revision in history.revisions] == ["kcm"]


def test_a_deletion_that_is_answered_with_a_status_has_its_user(tmp_path: Path) -> None:
    history = read(tmp_path / "log", [audited("delete", "", "anna")], [event(CLAIM, 9, None, 7)])
    assert [revision.actor for revision in history.revisions] == ["anna"]


def test_what_the_log_does_not_have_yet_is_waited_for_in_order(tmp_path: Path) -> None:
    log = tmp_path / "log"
    claim = stored("resource.k8s.io/v1", 5)
    events = [event(CLAIM, 5, claim), event(POD, 6, stored("v1", 6))]
    history = read(log, [], events)
    assert (history.revisions, history.position) == ([], 4)
    whole = audited("create", "5", "anna") + "\n"
    log.write_text(whole[:20])
    history._release(history._waiting[0][0])
    assert history.revisions == []
    log.write_text(whole)
    history._release(history._waiting[0][0])
    assert [(revision.number, revision.actor) for revision in history.revisions] == [
        (5, "anna"),
        (6, "kubectl"),
    ]
    assert history.position == 6


def test_who_names_the_version_before_wrote_and_who_names_it_did_not(tmp_path: Path) -> None:
    entries = [
        audited("patch", "7", "idle, earlier in the log"),
        audited("patch", "7", "idle", asked="7"),
        audited("patch", "7", "the-controller", asked="5"),
    ]
    claim = stored("resource.k8s.io/v1", 7)
    history = read(tmp_path / "log", entries, [event(CLAIM, 7, claim, 5)])
    assert [revision.actor for revision in history.revisions] == ["the-controller"]


def test_a_write_whose_end_was_not_logged_is_of_a_request_under_way(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    claim = stored("resource.k8s.io/v1", 5, "claimctl")
    entries = [
        begun("the-controller", "claimctl", now - timedelta(seconds=1)),
        begun("somebody", "kubectl", now - timedelta(seconds=2)),
        begun("another", "claimctl", now - timedelta(hours=1)),
    ]
    history = read(tmp_path / "log", entries, [event(CLAIM, 5, claim)], waited=10.0)
    assert [revision.actor for revision in history.revisions] == ["the-controller"]
    alone = read(tmp_path / "alone", entries[1:], [event(CLAIM, 5, claim)], waited=10.0)
    assert [revision.actor for revision in alone.revisions] == ["somebody"]


def test_a_write_that_no_request_explains_is_nobodys_who_is_known(tmp_path: Path) -> None:
    claim = stored("resource.k8s.io/v1", 5, "claimctl")
    history = read(tmp_path / "log", [], [event(CLAIM, 5, claim)], waited=10.0)
    assert [revision.actor for revision in history.revisions] == ["claimctl"]


def test_keys_of_other_kinds_only_move_the_position(tmp_path: Path) -> None:
    lease = event("/registry/leases/kube-system/x", 8, stored("coordination.k8s.io/v1", 8))
    history = read(tmp_path / "log", [], [lease])
    assert (history.revisions, history.position) == ([], 8)


def test_custom_resources_and_nodes_have_their_plural(tmp_path: Path) -> None:
    plan = stored("claimctl.io/v1alpha1", 3)
    events = [
        event("/registry/claimctl.io/downgradeplans/slice", 3, plan),
        event("/registry/minions/slice", 4, stored("v1", 4)),
    ]
    history = read(tmp_path / "log", [], events, waited=10.0)
    assert [revision.plural for revision in history.revisions] == ["downgradeplans", "nodes"]


def test_a_compaction_ahead_of_the_history_is_an_end() -> None:
    with pytest.raises(HistoryLost, match="begins with revision 100 now"):
        History("")._take({"compact_revision": "100"})


def named(plural: str, name: str, version: int) -> Revision:
    value = stored("v1" if plural == "pods" else "resource.k8s.io/v1", version)
    value["metadata"]["name"] = name
    history = History("")
    history._take({"events": [event(f"/registry/{plural}/team/{name}", version, value)]})
    history._release(history._waiting[0][0] + 10.0)
    return history.revisions[0]


def test_what_a_restore_changes_is_told_in_an_order_that_accuses_nobody() -> None:
    """Pods go before the claims change, and those that come back do so after the claims."""
    present = [named("resourceclaims", "slice", 9), named("pods", "new", 8), named("pods", "a", 2)]
    backup = [named("pods", "old", 3), named("resourceclaims", "slice", 4), named("pods", "a", 2)]
    told = restoring(
        {(revision.plural, "team", revision.name): revision for revision in present}, backup, 10
    )
    assert [(revision.number, revision.type, revision.name) for revision in told] == [
        (10, "DELETED", "new"),
        (11, "MODIFIED", "slice"),
        (12, "ADDED", "old"),
    ]
    assert [revision.previous for revision in told] == [present[1].data, present[0].data, None]


def test_after_a_restore_numbers_grow_on_and_versions_begin_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, claim = tmp_path / "log", stored("resource.k8s.io/v1", 0)
    written = [audited("create", "5", "anna"), audited("update", "7", "before", asked="5")]
    history = read(log, written, [event(CLAIM, 5, claim), event(CLAIM, 7, claim, 5)])
    backup = [{**event(CLAIM, 5, claim)["kv"]}]

    async def answers(*_: object) -> list[Any]:
        return backup

    async def caught_up(*_: object) -> None:
        pass

    async def restored() -> None:
        history._reading = asyncio.create_task(asyncio.sleep(60))
        await history.rewind(lambda: 6)

    monkeypatch.setattr(History, "_stored", answers)
    monkeypatch.setattr(History, "caught_up", caught_up)
    asyncio.run(restored())
    with log.open("a") as more:
        more.write(audited("update", "7", "after", asked="5") + "\n")
    history._take({"events": [event(CLAIM, 7, claim, 5)]})
    history._release(history._waiting[0][0])
    assert [(revision.number, revision.actor) for revision in history.revisions] == [
        (5, "anna"),
        (7, "before"),
        (8, RESTORE),
        (9, "after"),
    ]
    versions = [revision.object()["metadata"]["resourceVersion"] for revision in history.revisions]
    assert versions == ["5", "7", "5", "7"]
