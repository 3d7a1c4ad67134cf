"""The recorded roles are those that the cluster serves."""

from __future__ import annotations

from kube_in_process.auth.bootstrap import make_policy
from kube_in_process.auth.rbac import GROUP, PLURALS
from kube_in_process.storage.store import Store

from judges.policy_record import FILE, recorded


def test_what_is_served_is_recorded_as_the_same_file() -> None:
    store = Store(lambda: 0.0)
    make_policy(store, "2026-01-01T00:00:00Z")
    assert recorded({plural: store.list(GROUP, plural) for plural in PLURALS}) == FILE.read_text()


def test_what_users_and_vendors_add_is_not_recorded() -> None:
    def role(name: str, **labels: str) -> dict[str, object]:
        return {"metadata": {"name": name, "labels": labels}, "rules": []}

    label = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    text = recorded({"roles": [role("mine"), role("system:openshift:x", **label)]})
    assert text == '{"roles": [\n\n]}\n'
