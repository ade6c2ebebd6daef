"""For all tests: a home that is nobody's, a disk that is quick, examples that no deadline judges, no process left."""

from __future__ import annotations

import ctypes
import gc
import inspect
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.support import forked_workers, warm
from tests.support.left_behind import MARK, end_and_name, mark
from tests.support.tier import IS_LANDING
from tests.support.waiting import DEADLINE_S

# The same examples in every run, so that a change is judged by what it changed; FRESH_EXAMPLES=1 finds new ones.
same = "FRESH_EXAMPLES" not in os.environ
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=same)
settings.load_profile("steady")
if same:  # it would draw from the constants of all of src, which change with every commit and take each worker seconds
    vars(providers)["_get_local_constants"] = vars(providers)["Constants"]


# With it every command, hub and host of every test would compile all of src again: half of the processor's time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

MEMORY_DISK = Path("/dev/shm")
ROOM = 2**30  # of the memory disk; a container often has less, and files that may not be executed
PR_SET_DUMPABLE = 4  # of Linux
FOLDERS = {"fleet_server": "heavy", "browser": "browser"}  # with a mark for all that is in them
SHORT = 30  # the longest folder below which the address of a socket still fits


def pytest_configure(config: pytest.Config) -> None:
    """What a shell, an editor or git reads from its user's home (a slow ~/.bashrc, say) must not decide a test."""
    gc.disable()  # until all is collected
    if not hasattr(config, "workerinput"):
        _use_a_quick_folder(config)
    if os.name == "posix":
        _hear_signals()
    if "WITH_ZYGOTE" not in os.environ:  # `make test-zygote` runs the tests of `run` both ways
        os.environ["ATLASBRIDGE_SESSION_ZYGOTE"] = "0"  # a process more for every home; those that test it turn it on
    config.add_cleanup(_own_home())
    _be_patient()
    if config.getoption("forks", 0) and not config.option.collectonly:
        warm.prepare()
    forked_workers.BEGIN_WORKER.append(_own_home)


def _be_patient() -> None:
    """httpx waits five seconds where nothing else is said. A busy machine needs more for what it does at once."""
    usual = inspect.signature(httpx.Client).parameters["timeout"].default
    usual.connect = usual.read = usual.write = usual.pool = DEADLINE_S


def _own_home() -> Callable[[], None]:
    """Of each process that runs tests: a home, a mark for all that it starts, and a warm process."""
    home = tempfile.TemporaryDirectory(prefix="ab-home-", ignore_cleanup_errors=True)
    os.environ["HOME"] = home.name
    os.environ[MARK] = mark()
    warm.remember_environ()

    def end() -> None:
        warm.close()
        home.cleanup()

    return end


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file that `-m` leaves out as a whole is not even imported: some bring a browser or a generator of requests."""
    left_out = re.findall(r"not (\w+)", config.option.markexpr) if " or " not in config.option.markexpr else []
    if FOLDERS.get(collection_path.name) in left_out:
        return True
    if not left_out or not re.fullmatch(r"test_\w+\.py", collection_path.name):
        return None
    marks = re.search(r"^pytestmark = (.+)$", collection_path.read_text("utf-8"), re.MULTILINE)
    return True if marks and set(left_out) & set(re.findall(r"pytest\.mark\.(\w+)", marks[1])) else None


def pytest_runtest_setup() -> None:
    """A command that a test before ran in this process has hidden its memory, and with it which sockets are its own:
    for all but root the page could no longer see who asks it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


def pytest_collection_finish() -> None:
    """What was collected stays until the end. The garbage collector need not go through it after every file."""
    gc.enable()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file of which `make test` takes a share is part of a landing as a whole."""
    for item in items if IS_LANDING else ():
        if isinstance(item, pytest.Function) and (hasattr(item.module, "times") or hasattr(item.module, "examples")):
            item.add_marker("landing")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A run that did not come to its end has no list of all that failed, which `.ci/run` would try once more alone."""
    cache = getattr(session.config, "cache", None)
    if cache and exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        cache.set("cache/lastfailed", {})


def _use_a_quick_folder(config: pytest.Config) -> None:
    """What the tests write lies in memory where that is possible: the product calls fsync for every answer."""
    usual = tempfile.gettempdir()
    chosen = str(MEMORY_DISK) if _is_fit(MEMORY_DISK) else usual if len(usual) <= SHORT else "/tmp"
    root = tempfile.mkdtemp(prefix="ab-", dir=chosen)
    os.chmod(root, 0o711)  # some tests do without root's rights, and have to reach their home
    config.add_cleanup(lambda: shutil.rmtree(root, ignore_errors=True))
    os.environ["TMPDIR"] = tempfile.tempdir = root
    config.option.basetemp = config.option.basetemp or f"{root}/t"  # short, for sockets in it


def _is_fit(folder: Path) -> bool:
    if sys.platform != "linux" or not os.access(folder, os.W_OK | os.X_OK):
        return False
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize >= ROOM and not disk.f_flag & os.ST_NOEXEC


def _hear_signals() -> None:
    """What `nohup` or a shell's `&` lets the tests ignore, all that they start would ignore, too."""
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def tmp_path() -> Path:
    """Made without a look at the folders of thousands of tests before; all of them go with the run."""
    return Path(tempfile.mkdtemp(prefix="t"))


@pytest.fixture(autouse=True, scope="module")
def nothing_is_left_running() -> Iterator[None]:
    """Each file of tests ends what it has started: a process that goes on would disturb others, and for days."""
    yield
    left = end_and_name()
    assert not left, "left running: " + "; ".join(left)
