"""What each kind of trouble becomes: an exit code and one line."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import NoReturn

import pytest
import typer

from claimctl.cli.errors import (
    DEBUG_VARIABLE,
    CommandFailed,
    ExitCode,
    Terminated,
    UsageError,
    classify,
    guarded,
)
from claimctl.kube.errors import ConfigError, Forbidden, RequestTimeout, Unauthorized
from claimctl.telemetry.settings import TelemetrySettingError


@pytest.fixture(autouse=True)
def no_debugging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DEBUG_VARIABLE, raising=False)


def raising(error: BaseException) -> Callable[[], NoReturn]:
    def run() -> NoReturn:
        raise error

    return run


def outcome(run: Callable[[], object]) -> tuple[int, str]:
    err = io.StringIO()
    return guarded(run, err), err.getvalue()


FORBIDDEN = Forbidden("GET", "/api/v1/pods", status=403, reason="Forbidden", message="not you")


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UsageError("--nodes: 0 is too few"), ExitCode.USAGE, "error: --nodes: 0 is too few\n"),
        (ConfigError("a.yaml: empty"), ExitCode.USAGE, "error: a.yaml: empty\n"),
        (TelemetrySettingError("OTEL_X: bad"), ExitCode.USAGE, "error: OTEL_X: bad\n"),
        (typer.BadParameter("no"), ExitCode.USAGE, "error: Invalid value: no\n"),
        (
            ModuleNotFoundError("No module named 'cel'", name="cel"),
            ExitCode.FAILED,
            "error: the Python package of cel is missing: this installation has only what the "
            "controller needs; pip install the wheel of claimctl\n",
        ),
        (
            ModuleNotFoundError("No module named 'kube_in_process'", name="kube_in_process"),
            ExitCode.FAILED,
            "error: the embedded cluster is not installed: `pip install ./kube-in-process` in a "
            "clone of claimctl, else pip install the wheel of kube-in-process\n",
        ),
        (CommandFailed("lost\nthe lease"), ExitCode.FAILED, "error: lost the lease\n"),
        (FORBIDDEN, ExitCode.FAILED, "error: GET /api/v1/pods: 403 Forbidden: not you\n"),
        (
            RequestTimeout("GET", "/version", message="no answer in 30 s"),
            ExitCode.FAILED,
            "error: GET /version: no answer in 30 s\n",
        ),
        (typer.Abort(), ExitCode.FAILED, "error: aborted\n"),
        (
            KeyError("x"),
            ExitCode.FAILED,
            "error: unexpected KeyError: 'x' (run again with --debug for the traceback)\n",
        ),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, ""),
        (Terminated(), ExitCode.TERMINATED, ""),
        (SystemExit(3), 3, ""),
        (SystemExit(), 0, ""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_trouble_is_one_line_and_an_exit_code(error: BaseException, code: int, line: str) -> None:
    assert outcome(raising(error)) == (code, line)


@pytest.mark.parametrize(
    ("returned", "code"), [(None, 0), (0, 0), (ExitCode.FINDINGS, 3), ("text", 0)]
)
def test_what_a_command_returns_is_the_exit_code(returned: object, code: int) -> None:
    assert outcome(lambda: returned) == (code, "")


def test_tracebacks_are_for_those_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEBUG_VARIABLE, "1")
    _, text = outcome(raising(KeyError("x")))
    assert text.startswith("| Traceback (most recent call last):\n|   File ")
    assert text.splitlines()[-1].startswith("error: unexpected KeyError: 'x'")


def test_an_expired_login_says_what_to_do() -> None:
    error = Unauthorized("GET", "/apis", status=401, reason="Unauthorized", message="Unauthorized")
    code, line = classify(error)
    assert code == ExitCode.FAILED
    assert "log in again, or look at the kubeconfig (kubectl config view --minify)" in line
