"""Which boot each node has had last, and of which machine each boot was.

A reboot ends all containers. Another machine that takes over the name of a node ends none.
"""

from __future__ import annotations

from cachetools import LRUCache

from claimctl.wire.nodes import Node

REMEMBERED_NODES = 10_000
_BOOTS_OF_A_NODE = 2
"""For how many boots of a node there is room: the present one, and the one before."""


class BootIds:
    """Remembers the boots that this process has seen, also after the Node object is gone: that of a
    lost node may be deleted before its pods."""

    def __init__(self) -> None:
        self._last: LRUCache[str, str] = LRUCache(REMEMBERED_NODES)
        """The last boot ID, by the name of the node."""
        self._machines: LRUCache[str, tuple[str, str]] = LRUCache(
            _BOOTS_OF_A_NODE * REMEMBERED_NODES
        )
        """The machine, by boot ID."""

    def observe(self, node: Node) -> bool:
        """Note a node; return whether it has another boot ID than when it was last seen."""
        name, info = node.metadata.name, node.status.node_info
        before = self._last.get(name, "")
        if info.boot_id:
            self._last[name] = info.boot_id
            self._machines[info.boot_id] = info.machine
        return bool(before) and bool(info.boot_id) and before != info.boot_id

    def of(self, node_name: str) -> str:
        """The last boot ID seen on the node, or ''."""
        return self._last.get(node_name, "")

    def rebooted(self, node_name: str, boot_id: str) -> bool:
        """Whether the machine that had this boot ID has another one now, so that its containers of
        then are gone.

        If another machine has the node's name now, the first one may still run: that is no reboot.
        The machine is unknown for a boot ID that this process has not seen itself, as one that an
        earlier process recorded: that proves no reboot either.
        """
        now = self.of(node_name)
        machine = self._machines.get(boot_id, ("", ""))
        return now != boot_id and any(machine) and machine == self._machines.get(now)

    def has_another_boot(self, node_name: str, boot_id: str) -> bool:
        """Whether the node has another boot now, perhaps of another machine. That proves nothing
        about the containers of this one."""
        now = self.of(node_name)
        return bool(boot_id) and bool(now) and now != boot_id
