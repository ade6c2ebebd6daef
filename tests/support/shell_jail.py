"""Real shells that can run nothing but stubs: a stub writes down its name, its words and its environment.

Every shell that is installed gets each command as a tool would give it: `shell -c TEXT`.  They live in an empty root as
a user without rights.  Where this process cannot make such a root, only shells with a restricted mode are used.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

STUBS = (
    *("ls", "git", "npm", "cat", "grep", "find", "make", "stdbuf", "sudo", "xargs", "rm"),
    *(
        "evil",
        "reboot",
        "curl",
        "python",
        "sh",
        "bash",
        "zsh",
        "ash",
        "dash",
        "ksh",
        "echo",
        "printf",
        "true",
        "x",
        "a",
    ),
)
WRAPPERS = ("env", "timeout", "nice")  # the real ones, which start what they are given
SHELLS: Mapping[str, tuple[str, ...]] = {
    "bash": ("bash", "--norc", "--noprofile", "-c"),
    "dash": ("dash", "-c"),
    "zsh": ("zsh", "-f", "-c"),
    "busybox": ("busybox", "sh", "-c"),
}
_RESTRICTED = {"bash": ("bash", "--norc", "--noprofile", "-r", "-c"), "zsh": ("zsh", "-f", "-r", "-c")}
_ENVIRONMENT = ("PATH", "LD_PRELOAD", "X", "BASH_ENV", "ENV")
_CLONE_NEWUSER = 0x10000000

Started = tuple[str, ...]  # its environment, then its name and words


def found_shells() -> tuple[str, ...]:
    return tuple(name for name in SHELLS if shutil.which(name))


class ShellJail:
    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.whole = os.geteuid() == 0 or _may_have_namespaces()
        self.shells = found_shells() if self.whole else tuple(name for name in found_shells() if name in _RESTRICTED)
        assert self.shells, "no shell to try commands in: install bash (tools/install-extras installs all four)"
        self._top = "" if self.whole else str(folder)
        for name in ("room", "log", "dev", "bin", "tmp", "shells"):
            (folder / name).mkdir()
        stub = self._stub()
        for place in ("bin", "tmp"):
            for name in STUBS:
                (folder / place / name).write_text(stub)
                (folder / place / name).chmod(0o755)
        if self.whole:
            for name in {*self.shells, "dash" if "dash" in self.shells else "bash"}:
                _copy_with_libraries(Path(shutil.which(name) or name), folder, f"shells/{name}")
            for name in WRAPPERS:
                _copy_with_libraries(Path(shutil.which(name) or name), folder, f"bin/{name}")
            (folder / "dev/null").touch()
            (folder / "dev/null").chmod(0o666)
        for name in ("room", "log"):
            (folder / name).chmod(0o777)
        folder.chmod(0o755)

    @property
    def environment(self) -> str:
        """What a stub writes when nothing was changed for it."""
        return f"{self._top}/bin||||"

    def _stub(self) -> str:
        shell = f"/shells/{'dash' if 'dash' in self.shells else 'bash'}" if self.whole else shutil.which("bash")
        values = "|".join(f"${name}" for name in _ENVIRONMENT)
        return (
            f'#!{shell}\nprintf \'%s\\0\' "<$number" "{values}" "$0" "$@" "$number>" > "{self._top}/log/$number.$$"\n'
        )

    def run(self, shell: str, commands: Sequence[str]) -> list[list[Started]]:
        """What each command started."""
        for path in (self.root / "log").iterdir():
            path.unlink()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                self._enter()
                status = self._run_all(shell, commands)
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        assert status == 0, f"{shell} could not be started in the jail: {status}"
        written = [path.name for path in (self.root / "room").iterdir()]
        assert not written, f"a command has written {written}"
        return self._started(len(commands))

    def _run_all(self, shell: str, commands: Sequence[str]) -> int:
        os.chdir(f"{self._top}/room")
        nothing = os.open("/dev/null", os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        base = SHELLS[shell] if self.whole else _RESTRICTED[shell]
        program = f"/shells/{base[0]}" if self.whole else str(shutil.which(base[0]))
        for number, text in enumerate(commands, 1):
            values = {"PATH": f"{self._top}/bin", "number": str(number), "HOME": f"{self._top}/room"}
            process = os.posix_spawn(program, [*base, text], values, setsigdef=[signal.SIGPIPE], setpgroup=0)
            os.waitpid(process, 0)
        return 0

    def _started(self, count: int) -> list[list[Started]]:
        """One file for each process: lines of two that write at once cannot mix."""
        found: list[list[Started]] = [[] for _ in range(count)]
        for path in sorted((self.root / "log").iterdir()):
            data = path.read_bytes().decode("utf-8", "surrogateescape")
            number = path.name.partition(".")[0]
            for block in data.split(f"{number}>\0")[:-1]:  # an `exec` keeps the number of the process
                first, environment, program, *words, last = block.split("\0")
                assert (first, last) == (f"<{number}", ""), data
                name = program.removeprefix(f"{self._top}/bin/") if program.startswith(f"{self._top}/bin/") else program
                found[int(number) - 1].append((environment, name, *words))
        return found

    def _enter(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if not self.whole:
            return
        if os.geteuid() == 0:
            os.chroot(self.root)
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        else:
            _new_user_namespace()
            os.chroot(self.root)


def _may_have_namespaces() -> bool:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _new_user_namespace()
            os.chroot("/")
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def _new_user_namespace() -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "unshare") or library.unshare(_CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "no user namespace")


def _copy_with_libraries(program: Path, root: Path, target: str) -> None:
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    files = {str(program.resolve()): target}
    files |= {name: name for name in re.findall(r"(/\S+)", listed)}
    for source, where in files.items():
        place = root / where.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            shutil.copy(os.path.realpath(source), place)
            place.chmod(0o755)
