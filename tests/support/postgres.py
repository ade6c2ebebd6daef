"""A real PostgreSQL server in a folder of its own, on a socket of its own; killed and started again at will.

PostgreSQL does not run as root: there it is started as the user `postgres`, which its package makes.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

QUICK = "-c fsync=off -c full_page_writes=off -c max_connections=200 -c listen_addresses='' -c log_min_messages=fatal"


@cache
def programs() -> Path:
    """Where initdb and postgres are."""
    found = [*sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")), Path(shutil.which("initdb") or "")]
    usable = [path for path in found if path.is_file()]
    assert usable, "PostgreSQL is not installed: tools/install-extras does it"
    return usable[-1].parent


class Postgres:
    def __init__(self, folder: Path, options: str = QUICK) -> None:
        self.folder = folder
        self._options = options
        self._count = 0

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def _run(self, *words: str) -> None:
        done = subprocess.run(
            [str(programs() / words[0]), *words[1:]],
            user=_user(),
            capture_output=True,
            text=True,
            cwd=self.folder,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def create(self) -> None:
        self._run("initdb", "-D", str(self.data), "-A", "trust", "-U", "owner", "-E", "UTF8", "--no-sync", "--locale=C")

    def start(self) -> None:
        log = str(self.folder / "log")
        options = f"{self._options} -c unix_socket_directories={self.folder}"
        self._run("pg_ctl", "-D", str(self.data), "-l", log, "-o", options, "-w", "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self.data), "-m", "immediate", "-w", "stop")

    def kill_9(self) -> None:
        """The whole server, at once."""
        pid = int((self.data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(pid, signal.SIGKILL)
        for child in children:
            try:
                os.kill(int(child), signal.SIGKILL)
            except ProcessLookupError:
                pass  # it went with its parent
        deadline = time.monotonic() + 10
        while any(Path(f"/proc/{number}").exists() for number in (pid, *children)):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def url(self, name: str, user: str = "owner") -> str:
        return f"postgresql://{user}@/{name}?host={self.folder}"

    def new_database(self) -> str:
        """The address of an empty one."""
        self._count += 1
        name = f"server_{os.getpid()}_{self._count}"
        self._run("createdb", "-h", str(self.folder), "-U", "owner", name)
        return self.url(name)

    def sql(self, url: str, text: str) -> str:
        done = subprocess.run(
            [str(programs() / "psql"), "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", url, "-c", text],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


def _user() -> str | int | None:
    return "postgres" if os.getuid() == 0 and pwd.getpwnam("postgres") else None


@contextmanager
def postgres(options: str = QUICK) -> Iterator[Postgres]:
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        if os.getuid() == 0:
            os.chown(folder, pwd.getpwnam("postgres").pw_uid, -1)
            folder.chmod(0o755)
        server = Postgres(folder, options)
        server.create()
        server.start()
        yield server
        if (server.data / "postmaster.pid").exists():
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
