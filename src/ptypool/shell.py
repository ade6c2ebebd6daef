"""The shells that a session can run: how each is started, and the few lines that make it report each command's end.

The shell is a true interactive one, so that Ctrl-C ends a command and not the shell. A command reaches it as a file (no
length limit, no echo, no history expansion); its end is reported when the shell comes back for the next line.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_POSIX_SHELLS = ("sh", "dash", "ash", "ksh", "mksh")

# The nonce is read from a file, so that the text of the function never holds it; every redirection goes to the terminal
# itself, because a command may have sent the shell's own output elsewhere. No job control: no messages about jobs.
_REPORTING = r"""
set +m
unset HISTFILE ENV
__ptypool_begin() { printf '\036B%s\036' "$1" >/dev/tty; return "$2"; }
__ptypool_end() {
  __ptypool_status=$?
  @ENV@ -0 >|@FOLDER@/env
  printf %s "$PWD" >|@FOLDER@/cwd
  read -r __ptypool_nonce <@FOLDER@/nonce
  printf '\036E%s %d\036' "$__ptypool_nonce" "$__ptypool_status" >/dev/tty
}
"""
_BASH_PROMPT = "PROMPT_COMMAND='{ __ptypool_end; } 2>/dev/null' PS1= PS2="
_POSIX_PROMPT = "PS1='$(__ptypool_end 2>/dev/null)' PS2="
# A command may set the prompt for itself (an rc file does, a virtual environment too): put ours back after each.
_KEEP_PROMPT = "__ptypool_keep() { __ptypool_kept=$?; @PROMPT@; return $__ptypool_kept; }\n__ptypool_keep\n"
_KILL_LINE = b"\x15"


@dataclass(frozen=True, slots=True)
class ShellFiles:
    """The private folder through which a session talks to its shell."""

    folder: Path

    def prepare(self, shell: str) -> tuple[list[str], dict[str, str]]:
        """Write the start-up file; returns the arguments and the extra environment to start the shell with."""
        name = os.path.basename(shell)
        if name != "bash" and name not in _POSIX_SHELLS:
            raise ValueError(f"cannot keep a session in {name!r}: choose bash or one of {', '.join(_POSIX_SHELLS)}")
        start_up = self.folder / "start-up"
        reporting = _REPORTING.replace("@FOLDER@", shlex.quote(str(self.folder)))
        reporting = reporting.replace("@ENV@", shlex.quote(shutil.which("env") or "/usr/bin/env"))
        prompt = _BASH_PROMPT if name == "bash" else _POSIX_PROMPT
        start_up.write_text(reporting + _KEEP_PROMPT.replace("@PROMPT@", prompt))
        if name == "bash":
            return ["--noediting", "--noprofile", "--rcfile", str(start_up), "-i"], {}
        return ["-i"], {"ENV": str(start_up)}

    def expect(self, nonce: str) -> None:
        """The nonce that the next report carries."""
        (self.folder / "nonce").write_text(nonce + "\n")

    def put_command(self, command: str, nonce: str, last_status: int) -> bytes:
        """Lay the command ready; returns the line to type. `$?` is what the command before has left."""
        (self.folder / "command").write_bytes(os.fsencode(command) + b"\n")
        self.expect(nonce)
        file = shlex.quote(str(self.folder / "command"))
        return _KILL_LINE + f" __ptypool_begin {nonce} {last_status}; . {file}; __ptypool_keep\n".encode()

    def reported_cwd(self) -> str:
        return os.fsdecode((self.folder / "cwd").read_bytes())

    def reported_env(self) -> dict[str, str]:
        entries = (self.folder / "env").read_bytes().split(b"\0")
        pairs = (entry.partition(b"=") for entry in entries if entry)
        return without_bookkeeping({os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs})


def without_bookkeeping(env: Mapping[str, str]) -> dict[str, str]:
    """Leave out what each shell sets anew for itself."""
    return {name: value for name, value in env.items() if name not in ("_", "SHLVL", "PWD", "ENV")}
