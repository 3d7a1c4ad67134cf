"""Other distributions bring commands, checks and words by entry points."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from claimctl.cli import extensions
from claimctl.cli.errors import ExitCode, UsageError
from claimctl.cli.extensions import Extension, PodWords, about_pod, required
from claimctl.cli.main import run
from claimctl.wire.pods import Pod


class First(Extension):
    def about_pod(self, pod: Pod) -> PodWords:
        return PodWords(beside=(("Cold", "it is cold"),), advice={"Cold": "Heat it."})


class Second(Extension):
    def about_pod(self, pod: Pod) -> PodWords:
        return PodWords(("Asleep", "it sleeps"), (("Wet", "it is wet"),), {"Wet": "Dry it."})


def install(patch: pytest.MonkeyPatch, **found: Extension) -> None:
    def installed() -> Mapping[str, Extension]:
        return found

    patch.setattr(extensions, "extensions", installed)


def test_what_all_extensions_say_of_a_pod_is_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, first=First(), second=Second())
    words = about_pod(Pod())
    assert words.waits == ("Asleep", "it sleeps")
    assert words.beside == (("Cold", "it is cold"), ("Wet", "it is wet"))
    assert words.advice == {"Cold": "Heat it.", "Wet": "Dry it."}


async def test_an_extension_needs_to_bring_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, plain=Extension())
    assert about_pod(Pod()) == PodWords()
    assert required("plain").commands == {}


def test_an_extension_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    with pytest.raises(UsageError, match=r"claimctl\[reschedule\] asks for"):
        required("reschedule")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["reschedule"], "reschedule"),
        (["reschedule", "--help"], "reschedule"),
        (["demo"], "demo"),
        (["demo", "cluster"], "demo"),
        (["help", "demo"], "demo"),
    ],
)
def test_a_command_without_its_extension_says_in_one_line_how_to_get_it(
    arguments: list[str],
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    install(monkeypatch)
    assert run(arguments) == ExitCode.USAGE
    folders = {
        "demo": "./kube-in-process ./claimctl-reschedule ./claimctl-demo",
        "reschedule": "./claimctl-reschedule",
    }
    assert capsys.readouterr().err == (
        f"error: claimctl {name} is not installed: `pip install {folders[name]}` in a clone of "
        f"claimctl, else pip install the wheel of claimctl-{name}, which is what claimctl[{name}] "
        "asks for\n"
    )
