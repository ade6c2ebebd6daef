"""`--forks N`: the tests are collected once, and N forks of that process run them.

A worker has one test more than the one it runs, because pytest must know which fixtures the next test needs.  It stays
in its file; then it takes a file that no worker has begun, and at last what is left of a longer one.  A worker that
dies fails its test, and another takes its place.  Systems without fork use pytest-xdist instead (`-n`).
"""

from __future__ import annotations

import os
import sys
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait

import pytest

BEGIN_WORKER: list[Callable[[], Callable[[], None]]] = []  # what each worker has of its own; gives how that is ended
KEPT: list[object] = []
AHEAD = 2  # the test that runs, and the next
TOOK = "forked_workers/seconds"  # per file, in pytest's cache: the longest begins first


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, default=0, help="collect once and run the tests in so many forks")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> object:
    wanted = min(session.config.option.forks, len(session.items))
    if wanted < 1 or session.config.option.collectonly or session.testsfailed:
        return None  # pytest's own loop
    Foreman(session, wanted).run()
    return True


class Worker:
    def __init__(self, pid: int, connection: Connection) -> None:
        self.pid = pid
        self.connection = connection
        self.tests: deque[int] = deque()  # which it has; the first is running
        self.file = ""


class Foreman:
    """The process that collected: it hands tests out, and reports what comes back."""

    def __init__(self, session: pytest.Session, wanted: int) -> None:
        self._session = session
        self._wanted = wanted
        self._workers: list[Worker] = []
        self._waiting: dict[str, deque[int]] = {}  # per file; a file is left out as soon as a worker has begun it
        self._begun: dict[str, deque[int]] = {}
        cache = getattr(session.config, "cache", None)
        self._took: dict[str, float] = cache.get(TOOK, {}) if cache else {}
        self._takes: Counter[str] = Counter()
        files = dict.fromkeys(str(item.path) for item in session.items)
        for file in sorted(files, key=lambda file: -self._took.get(file, 0.0)):
            self._waiting[file] = deque()
        for number, item in enumerate(session.items):
            self._waiting[str(item.path)].append(number)

    def run(self) -> None:
        self._session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # made once, not by each
        try:
            for _ in range(self._wanted):
                self._start()
            while self._workers:
                ready = wait([one.connection for one in self._workers])
                for worker in [one for one in self._workers if one.connection in ready]:
                    self._hear(worker)
        finally:
            for worker in self._workers:
                worker.connection.close()  # it ends where its next test would begin
                os.waitpid(worker.pid, 0)
            if cache := getattr(self._session.config, "cache", None):
                cache.set(TOOK, self._took | self._takes)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _start(self) -> None:
        ours, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            for worker in self._workers:
                worker.connection.close()
            ours.close()
            _be_a_worker(self._session, theirs)
        theirs.close()
        worker = Worker(pid, ours)
        self._workers.append(worker)
        for _ in range(AHEAD):
            self._hand_out(worker)

    def _hear(self, worker: Worker) -> None:
        try:
            reports = worker.connection.recv()
        except (EOFError, ConnectionError):
            reports = None
        if reports is None:
            self._bury(worker)
        else:
            self._report(worker.tests.popleft(), reports)
            self._hand_out(worker)

    def _hand_out(self, worker: Worker) -> None:
        """The next test, or None: there is no other."""
        number = None if self._session.shouldfail or self._session.shouldstop else self._next(worker)
        if number is not None:
            worker.tests.append(number)
        try:
            worker.connection.send(number)
        except ConnectionError:
            pass  # it has died, and is heard of next

    def _next(self, worker: Worker) -> int | None:
        if not (left := self._begun.get(worker.file)):
            self._begun.pop(worker.file, None)
            if self._waiting:
                worker.file = next(iter(self._waiting))
                self._begun[worker.file] = self._waiting.pop(worker.file)
            elif self._begun:
                worker.file = max(self._begun, key=lambda file: len(self._begun[file]))
            left = self._begun.get(worker.file)
        return left.popleft() if left else None

    def _bury(self, worker: Worker) -> None:
        self._workers.remove(worker)
        worker.connection.close()
        _, status = os.waitpid(worker.pid, 0)
        ended = f"the process of the tests ended: status {os.waitstatus_to_exitcode(status)}"
        if worker.tests:
            number = worker.tests.popleft()
            self._report(number, [_failure(self._session.items[number], ended)])
            self._begun.setdefault(worker.file, deque()).extendleft(worker.tests)
            self._start()
        elif status:
            self._session.shouldfail = ended

    def _report(self, number: int, reports: list[pytest.TestReport | dict[str, object]]) -> None:
        item = self._session.items[number]
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for one in reports:
            if isinstance(one, dict):
                one = self._session.config.hook.pytest_report_from_serializable(config=item.config, data=one)
                self._takes[str(item.path)] += one.duration
            hook.pytest_runtest_logreport(report=one)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _failure(item: pytest.Item, word: str) -> pytest.TestReport:
    return pytest.TestReport(item.nodeid, item.location, {}, "failed", word, "call")


class Collector:
    """Of a worker: the reports of the test that runs."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.reports: list[object] = []

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.reports.append(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))

    def take(self) -> list[object]:
        taken, self.reports = self.reports, []
        return taken


def _be_a_worker(session: pytest.Session, foreman: Connection) -> None:
    status = 1
    try:
        with _own_output(session.config), _own_things():
            _work(session, foreman)
        status = 0
    except (EOFError, ConnectionError, KeyboardInterrupt):
        pass  # nobody waits for it
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _work(session: pytest.Session, foreman: Connection) -> None:
    collector = Collector(session.config)
    session.config.pluginmanager.register(collector)
    number = foreman.recv()
    while number is not None:
        following = foreman.recv()
        item = session.items[number]
        after = None if following is None else session.items[following]
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        foreman.send(collector.take())
        number = following


@contextmanager
def _own_output(config: pytest.Config) -> Iterator[None]:
    """The foreman speaks to the terminal; what a test prints is kept apart from that of the others."""
    config.pluginmanager.unregister(name="terminalreporter")
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture:
        capture.suspend_global_capture(in_=True)
        KEPT.append(capture._global_capturing)  # some module took its sys.stderr when it was imported
        capture._global_capturing = None
        capture.start_global_capturing()
        capture.suspend_global_capture(in_=True)
    yield
    if capture:
        capture.stop_global_capturing()


@contextmanager
def _own_things() -> Iterator[None]:
    ends = [begin() for begin in BEGIN_WORKER]
    try:
        yield
    finally:
        for end in ends:
            end()
