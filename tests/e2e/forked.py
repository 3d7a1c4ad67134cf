"""Runs tests in parallel, in processes that are forked after import and collection.

Scenarios on a real cluster wait most of the time, so many run at once. Two dozen processes that
import and collect for themselves would take longer than the scenarios.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

import pytest

_PLACE_BYTES = 4
_END_SECONDS, _LOOK_SECONDS = 30.0, 0.05
_ENDED = "the process that played it has ended"


@dataclass(slots=True)
class _Child:
    pid: int
    receiver: Connection
    playing: int | None = None
    """The index of the test that the process runs."""


@dataclass(slots=True)
class SideBySide:
    """A plugin of pytest that runs tests in forked processes.

    Attributes:
        workers: number of processes for the other tests.
        apart: whether a test needs a process that has a cluster for itself.
        owners: number of processes for those tests.
        tidy: called in every process at its end.
        rank: tests of a lower rank begin first.
        pause_seconds: time between the starts of two processes.
    """

    workers: int
    apart: Callable[[pytest.Item], bool]
    owners: int
    tidy: Callable[[], None]
    rank: Callable[[pytest.Item], int] = lambda item: 0
    pause_seconds: float = 0.0
    _children: list[_Child] = field(default_factory=list)
    _done: set[int] = field(default_factory=set)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed or session.config.option.collectonly:
            return False
        # All processes share one directory for temporary files; create it before the fork.
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # not public
        places = sorted(range(len(session.items)), key=lambda at: self.rank(session.items[at]))
        apart = [place for place in places if self.apart(session.items[place])]
        rest = [place for place in places if place not in set(apart)]
        try:
            for places, count in ((apart, self.owners), (rest, self.workers)):
                source = _queue(places)
                for _ in range(min(count, len(places))):
                    self._children.append(self._forked(session, source))
                    time.sleep(self.pause_seconds)
                os.close(source)
            self._follow(session)
        except KeyboardInterrupt:
            for child in self._children:
                if child.playing is not None:
                    print(f"\ninterrupted: {session.items[child.playing].nodeid}", end="")
            raise
        finally:
            self._end()
        self._name_missing(session)
        return True

    def _forked(self, session: pytest.Session, source: int) -> _Child:
        receiver, sender = Pipe(duplex=False)
        if pid := os.fork():
            sender.close()
            return _Child(pid, receiver)
        receiver.close()
        code = 1
        try:
            # A shell starts background jobs with SIGINT ignored.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            _play(session, source, sender)
            code = 0
        except KeyboardInterrupt:
            pass
        finally:
            # the process has ended its tests: an interrupt now would only leave a traceback
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            self.tidy()
            os._exit(code)

    def _follow(self, session: pytest.Session) -> None:
        """Report the results of the processes until the last one has ended."""
        running = {child.receiver: child for child in self._children}
        while running:
            for receiver in wait(list(running)):
                child = running[receiver]  # type: ignore[index]  # it gives back what it was given
                try:
                    what, place, data = child.receiver.recv()
                except EOFError:
                    del running[child.receiver]
                    self._ended(session, child)
                    continue
                self._report(session, child, what, place, data)
                if session.shouldfail:
                    raise session.Failed(session.shouldfail)

    def _report(
        self, session: pytest.Session, child: _Child, what: str, place: int, data: Any
    ) -> None:
        item, hook = session.items[place], session.config.hook
        if what == "begins":
            child.playing = place
            hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        elif what == "report":
            report = hook.pytest_report_from_serializable(config=session.config, data=data)
            hook.pytest_runtest_logreport(report=report)
            _say_if_failed(report)
        else:
            child.playing = None
            self._done.add(place)
            hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _ended(self, session: pytest.Session, child: _Child) -> None:
        if child.playing is not None:
            self._fail(session, child.playing)

    def _name_missing(self, session: pytest.Session) -> None:
        """Report the tests that no process ran, because the processes ended early."""
        for place in sorted(set(range(len(session.items))) - self._done):
            self._fail(session, place)

    def _fail(self, session: pytest.Session, place: int) -> None:
        item = session.items[place]
        self._done.add(place)
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", _ENDED, "call")
        session.config.hook.pytest_runtest_logreport(report=report)
        _say_if_failed(report)

    def _end(self) -> None:
        """Interrupt the running processes, and kill those that do not end."""
        for child in self._children:
            # Processes that have ended must be waited for as well.
            os.kill(child.pid, signal.SIGINT)
        end = time.monotonic() + _END_SECONDS
        for child in self._children:
            while not os.waitpid(child.pid, os.WNOHANG)[0]:
                if time.monotonic() > end:
                    os.kill(child.pid, signal.SIGKILL)
                time.sleep(_LOOK_SECONDS)
            child.receiver.close()


def _say_if_failed(report: pytest.TestReport) -> None:
    """Print a failure at once in one line: the whole run may take minutes more."""
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        why = (crash.message if crash else str(report.longrepr))[-600:].replace("\n", " ")
        print(f"\nfailed: {report.nodeid}: {why}", flush=True)


def _queue(places: Sequence[int]) -> int:
    """A pipe from which each process reads the indexes of its tests."""
    source, sink = os.pipe()
    with open(sink, "wb") as to:
        to.write(b"".join(place.to_bytes(_PLACE_BYTES, "big") for place in places))
    return source


def _taken(source: int) -> Iterator[int]:
    while data := os.read(source, _PLACE_BYTES):
        yield int.from_bytes(data, "big")


def _play(session: pytest.Session, source: int, sender: Connection) -> None:
    """Run the next free test, until there is none left."""
    config = session.config
    manager = config.pluginmanager
    manager.unregister(name="terminalreporter")
    # The files with captured output were shared with the other processes.
    capture = manager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    for place in _taken(source):

        def send(what: str, data: Any = None, place: int = place) -> None:
            sender.send((what, place, data))

        reporter = _Reporter(config, send)
        manager.register(reporter)
        send("begins")
        config.hook.pytest_runtest_protocol(item=session.items[place], nextitem=None)
        manager.unregister(reporter)
        send("ends")


@dataclass(slots=True, eq=False)
class _Reporter:
    config: pytest.Config
    send: Callable[[str, Any], None]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self.config.hook
        self.send("report", hook.pytest_report_to_serializable(config=self.config, report=report))
