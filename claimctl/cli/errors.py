"""Turns every error into one line on stderr and an exit code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from enum import IntEnum
from typing import TextIO

import typer

from claimctl.cli.printer import drop_stdout, print_lines
from claimctl.text import traceback_lines

DEBUG_VARIABLE = "CLAIMCTL_DEBUG"


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    """The cluster or a request failed, or leadership was lost."""
    USAGE = 2
    """Bad input: a flag, a file, the kubeconfig."""
    FINDINGS = 3
    """The command succeeded and found something that needs action."""
    INTERRUPTED = 130
    """Ctrl-C (SIGINT)."""
    TERMINATED = 143
    """SIGTERM."""


class UsageError(Exception):
    """Bad input. The text is one line: the flag or field, what was expected, what to do."""


class CommandFailed(Exception):
    """The command failed. The text is one line."""


class Terminated(BaseException):
    """SIGTERM has ended the command, as KeyboardInterrupt tells of SIGINT."""


def guarded(run: Callable[[], object], stderr: TextIO | None = None) -> int:
    """Run a command and return its exit code. An exception becomes one line on stderr."""
    err = stderr if stderr is not None else sys.stderr
    if sys.stdout is None:
        return _report(CommandFailed("cannot write the output: stdout is closed"), err)
    try:
        code = run()
        sys.stdout.flush()
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except Terminated:
        return ExitCode.TERMINATED
    except BrokenPipeError:
        drop_stdout()
        return ExitCode.FAILED
    except SystemExit as exit_:
        return ExitCode.FAILED if isinstance(exit_.code, str) else exit_.code or ExitCode.OK
    except Exception as error:
        if cannot_print(error):
            drop_stdout()
        return _report(error, err)
    return int(code) if isinstance(code, int) else ExitCode.OK


def _report(error: Exception, err: TextIO | None) -> int:
    code, line = classify(error)
    if err is None:  # stderr is closed, too
        return code
    if os.environ.get(DEBUG_VARIABLE, "") not in ("", "0"):
        print_lines(*traceback_lines(error), out=err)
    print_lines(f"error: {line}", out=err)
    return code


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF, errno.EFBIG})


def cannot_print(error: Exception) -> bool:
    """Whether stdout refused what a command printed, as a full disk does."""
    return isinstance(error, OSError) and error.filename is None and error.errno in _FULL


def classify(error: Exception) -> tuple[ExitCode, str]:
    """The exit code for an error, and the line to print."""
    from claimctl.kube.errors import ConfigError, KubeError, Unauthorized
    from claimctl.telemetry.settings import TelemetrySettingError

    match error:
        case typer.BadParameter() | typer.TyperException():
            context = getattr(error, "ctx", None)
            message = one_line(error.format_message()).replace("Value error, ", "").rstrip(".")
            hint = f" (see '{context.command_path} --help')" if context is not None else ""
            return ExitCode.USAGE, f"{message}{hint}"
        case UsageError() | ConfigError() | TelemetrySettingError():
            return ExitCode.USAGE, one_line(str(error))
        case Unauthorized():
            hint = "the server does not know this user: log in again, or look at the kubeconfig"
            return ExitCode.FAILED, f"{one_line(str(error))}; {hint} (kubectl config view --minify)"
        case KubeError() | CommandFailed():
            return ExitCode.FAILED, one_line(str(error))
        case ModuleNotFoundError(name="kube_in_process"):
            return ExitCode.FAILED, (
                "the embedded cluster is not installed: `pip install ./kube-in-process` in a clone "
                "of claimctl, else pip install the wheel of kube-in-process"
            )
        case ModuleNotFoundError(name=str(name)) if not name.startswith("claimctl"):
            return ExitCode.FAILED, (
                f"the Python package of {name.partition('.')[0]} is missing: this installation has "
                "only what the controller needs; pip install the wheel of claimctl"
            )
        case typer.Abort():
            return ExitCode.FAILED, "aborted"
        case OSError() if cannot_print(error):
            return ExitCode.FAILED, f"cannot write the output: {error.strerror}"
    text = one_line(f"{type(error).__name__}: {error}")
    return ExitCode.FAILED, f"unexpected {text} (run again with --debug for the traceback)"


def one_line(text: str) -> str:
    return " ".join(text.split())
