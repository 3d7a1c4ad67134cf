"""Whether the state of a kind's workloads is known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from claimctl.controller.caches.kinds import KindCache, KindState
from claimctl.kube.errors import Forbidden, KubeError
from claimctl.reservation.kinds.rules import Rule
from claimctl.wire.resources import Resource
from claimctl.wire.workloads import CustomWorkload

KIND = ("x.io", "Thing")
RULE = Rule("x.io", "Thing", "things")
THINGS = Resource("x.io", "v1", "things", "Thing", CustomWorkload)


def cache() -> tuple[KindCache, dict[Any, Any], list[Any]]:
    informers: dict[Any, Any] = {}
    told: list[Any] = []

    def informer(resource: Any, rule: Any) -> Any:
        return SimpleNamespace(synced=False, trouble=None)

    made = KindCache(informer, informers)
    made.on_follow = lambda kind, informer: told.append(kind)
    return made, informers, told


def test_a_kind_is_known_when_it_is_listed_and_can_be_read() -> None:
    kinds, informers, told = cache()
    assert kinds.problem(KIND) == "claimctl has not looked for Thing of x.io yet"
    kinds.leave(KindState(RULE, problem="the cluster does not serve it"))
    assert kinds.problem(KIND) == "the cluster does not serve it"
    kinds.follow(KindState(RULE, THINGS))
    assert (told, list(informers)) == ([KIND], [KIND])
    assert kinds.problem(KIND) == "Thing of x.io is not listed yet"
    informers[KIND].synced = True
    assert kinds.problem(KIND) == ""


def test_rights_that_go_make_it_unknown_and_an_outage_does_not() -> None:
    kinds, informers, _ = cache()
    kinds.follow(KindState(RULE, THINGS))
    informers[KIND].synced = True
    informers[KIND].trouble = KubeError("GET", "/x", message="connection lost")
    assert kinds.problem(KIND) == ""
    informers[KIND].trouble = Forbidden("GET", "/x", message="no")
    assert kinds.problem(KIND).startswith("Thing of x.io cannot be read: ")


def test_a_resource_is_found_by_its_name_while_its_kind_is_served() -> None:
    kinds, _, _ = cache()
    kinds.follow(KindState(RULE, THINGS))
    assert kinds.served("x.io", "things") == THINGS
    assert kinds.served("x.io", "others") is None
    assert kinds.states.get(KIND) == KindState(RULE, THINGS)
    kinds.leave(KindState(RULE, problem="gone"))
    assert kinds.served("x.io", "things") is None
    assert kinds.informers() == ()
