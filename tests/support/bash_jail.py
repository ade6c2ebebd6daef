"""A real bash that can run nothing: every program it would start is written down instead.

No folder of programs is on its path, its builtins are switched off, and it lives in an empty root as a user without
rights (where this process may make one; otherwise it is a restricted shell).  Many commands are tried in one process,
each in a subshell.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

_STUB = r"""#!/bin/bash
printf '%s\0' "<$number" "$PATH|$LD_PRELOAD|$X|$BASH_ENV|$IFS" "$0" "$@" "$number>" > "/log/$number.$BASHPID"
"""
_HARNESS = r"""
PATH=/nowhere
export number
command_not_found_handle() {
    enable printf
    printf '%s\0' "<$number" "$PATH|$LD_PRELOAD|$X|$BASH_ENV|$IFS" "$@" "$number>" > "/log/$number.$BASHPID"
}
number=0
off=()
while IFS=' ' read -r _ name; do
    case $name in enable|eval|builtin) ;; *) off+=("$name") ;; esac
done < <(enable)
while IFS= read -r -d '' text; do
    number=$((number + 1))
    ( cd /room; enable -n "${off[@]}"; eval "$text" ) </dev/null >/dev/null 2>&1
done < /commands
printf '%s' "$number" > /done
"""


STUBS = ("ls", "git", "npm", "cat", "echo", "grep", "find", "true", "make", "printf", "evil", "env", "timeout")


class BashJail:
    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.whole = os.geteuid() == 0
        for name in ("room", "nowhere", "dev", "log"):
            (folder / name).mkdir()
        if self.whole:
            _copy_with_libraries(Path(shutil.which("bash") or "/bin/bash"), folder)
            for name in STUBS:
                for place in ("bin", "tmp"):
                    (folder / place).mkdir(exist_ok=True)
                    (folder / place / name).write_text(_STUB)
                    os.chmod(folder / place / name, 0o755)
            (folder / "dev/null").touch()
            os.chmod(folder / "dev/null", 0o666)
        (folder / "done").touch()
        os.chmod(folder / "done", 0o666)
        for name in ("room", "log"):
            os.chmod(folder / name, 0o777)
        os.chmod(folder, 0o755)

    def run(self, commands: Sequence[str]) -> list[list[tuple[str, ...]]]:
        """What each command would have started, as argument lists; the environment that matters is the first item."""
        (self.root / "commands").write_bytes(b"".join(text.encode() + b"\0" for text in commands))
        (self.root / "done").write_bytes(b"")
        for path in (self.root / "log").iterdir():
            path.unlink()
        harness = _HARNESS if self.whole else self._restricted()
        program = "/bin/bash" if self.whole else shutil.which("bash") or "bash"
        subprocess.run(
            [program, "--norc", "--noprofile", "-c", harness],
            preexec_fn=self._enter,
            env={"PATH": "/nowhere"},
            check=False,
            timeout=120,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        done = (self.root / "done").read_text()
        assert done == str(len(commands)), f"bash stopped after {done or 'an unknown number of'} commands"
        written = [path.name for path in (self.root / "room").iterdir()]
        assert not written, f"a command has written {written}"
        return self._started(len(commands))

    def _started(self, count: int) -> list[list[tuple[str, ...]]]:
        """One file for each process: lines of two that write at once cannot mix."""
        found: list[list[tuple[str, ...]]] = [[] for _ in range(count)]
        for path in sorted((self.root / "log").iterdir()):
            first, *words, last, rest = path.read_bytes().decode("utf-8", "surrogateescape").split("\0")
            number = path.name.partition(".")[0]
            assert (first, last, rest) == (f"<{number}", f"{number}>", ""), path.read_bytes()
            found[int(number) - 1].append(tuple(words))
        return found

    def _enter(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))
        resource.setrlimit(resource.RLIMIT_CPU, (100, 100))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if self.whole:
            os.chroot(self.root)
            os.chdir("/room")
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        else:
            os.chdir(self.root / "room")

    def _restricted(self) -> str:
        """Without a root of its own: names with a slash and writing redirections are refused by the shell."""
        text = _HARNESS.replace("/log", str(self.root / "log")).replace("/done", str(self.root / "done"))
        text = text.replace("/commands", str(self.root / "commands")).replace("cd /room", f"cd {self.root}/room")
        return text.replace('enable -n "${off[@]}"; eval', 'enable -n "${off[@]}"; set -r; eval').replace(
            "case $name in enable|", "case $name in set|enable|"
        )


def _copy_with_libraries(program: Path, root: Path) -> None:
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    files = {str(program.resolve()): "/bin/bash"}
    files |= {name: name for name in re.findall(r"(/\S+)", listed)}
    for source, target in files.items():
        place = root / target.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(source), place)
        os.chmod(place, 0o755)
