"""The boots of nodes, and of which machines they were."""

from __future__ import annotations

from claimctl.controller.observations.boots import BootIds
from tests.support.builders import node


def test_a_node_is_known_by_the_last_boot_it_showed() -> None:
    boots = BootIds()
    assert not boots.observe(node(boot="boot-1"))
    assert not boots.observe(node(boot="boot-1"))
    assert not boots.observe(node(boot=""))
    assert boots.of("node-0") == "boot-1"
    assert boots.observe(node(boot="boot-2"))
    assert boots.of("nosuch") == ""


def test_a_boot_ends_only_what_ran_on_the_same_machine() -> None:
    boots = BootIds()
    boots.observe(node(boot="boot-1", machine="m-1"))
    boots.observe(node(boot="boot-2", machine="m-1"))
    assert boots.rebooted("node-0", "boot-1")
    boots.observe(node(boot="boot-3", machine="m-2"))
    assert not boots.rebooted("node-0", "boot-2")
    assert boots.has_another_boot("node-0", "boot-2")


def test_a_boot_that_was_never_seen_proves_nothing() -> None:
    boots = BootIds()
    boots.observe(node(boot="boot-2", machine="m-1"))
    assert not boots.rebooted("node-0", "boot-1")
    assert not boots.has_another_boot("nosuch", "boot-1")
