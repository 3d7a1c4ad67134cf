"""What the demonstration brings to claimctl: see ``claimctl.cli.extensions``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from claimctl.cli.extensions import Extension


class Demonstration(Extension):
    """The commands that need a cluster in a process."""

    commands: ClassVar[Mapping[str, str]] = {
        "demo": "claimctl_demo.commands.demo",
        "demo cluster": "claimctl_demo.commands.cluster",
    }
    documents = ("claimctl_demo.story.documents",)


EXTENSION = Demonstration()
