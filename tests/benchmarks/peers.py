"""The peers: how each wraps a command, and how it is had.  A peer that cannot be had is named in the report."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAIVE = HERE / "naive_relay.py"
BARE = HERE / "bare_relay.py"
PEXPECT = HERE / "pexpect_relay.py"


@dataclass(frozen=True, slots=True)
class Peer:
    name: str
    wrap: tuple[str, ...]  # "{}" stands for the command as one shell word; otherwise the command's words follow
    needs: str = ""  # program that must be there
    package: str = ""  # Debian package that brings it
    redraws: bool = False  # does not pass bytes on but draws a screen of its own

    def argv(self, command: list[str], scratch: Path) -> list[str]:
        """The command under this peer; `scratch` is a fresh folder for what the peer leaves behind."""
        filled = [word.replace("{scratch}", str(scratch)) for word in self.wrap]
        if "{}" in filled:
            return [" ".join(map(quote, command)) if word == "{}" else word for word in filled]
        return [*filled, *command]


def quote(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def instrument(folder: Path) -> str:
    """Compile the instrument; without a C compiler there is no benchmark."""
    out = folder / "instrument"
    subprocess.run(["cc", "-O2", "-o", str(out), str(HERE / "instrument.c"), "-lutil"], check=True)
    return str(out)


def all_peers(tool: str) -> list[Peer]:
    atlas = str(Path(sys.executable).parent / "atlasbridge")
    return [
        Peer("direct PTY", ()),
        Peer("C poll relay", (tool, "relay")),
        Peer("AtlasBridge", (atlas, "run", "--")),
        Peer("script(1)", ("script", "-qec", "{}", "/dev/null"), "script", "bsdutils"),
        Peer("dtach", ("dtach", "-A", "{scratch}/socket", "-E", "-z"), "dtach", "dtach"),
        Peer("expect", ("expect", str(HERE / "relay.exp")), "expect", "expect"),
        Peer("pexpect", (sys.executable, str(PEXPECT))),
        Peer(
            "asciinema",
            ("asciinema", "rec", "-q", "--overwrite", "-c", "{}", "{scratch}/cast"),
            "asciinema",
            "asciinema",
        ),
        Peer(
            "tmux",
            ("tmux", "-S", "{scratch}/tmux", "-f", "/dev/null", "new-session", "{}"),
            "tmux",
            "tmux",
            redraws=True,
        ),
        Peer("screen", ("screen", "-c", "/dev/null"), "screen", "screen", redraws=True),
        Peer("bare Python", (sys.executable, str(BARE))),
        Peer("naive (executor, 1 KB)", (sys.executable, str(NAIVE))),
    ]


def have(peers: list[Peer]) -> tuple[list[Peer], list[str]]:
    """The peers that can be run here, after installing what may be installed; and the names of the others."""
    install({peer.needs: peer.package for peer in peers if peer.needs})
    there = [peer for peer in peers if not peer.needs or shutil.which(peer.needs)]
    return there, [peer.name for peer in peers if peer not in there]


def install(packages: dict[str, str]) -> None:
    """By program and Debian package, what is missing; where we may not, it stays missing."""
    missing = [package for program, package in packages.items() if not shutil.which(program)]
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update"], ["install", "-y", "--no-install-recommends", *missing]):
            subprocess.run(["apt-get", "-qq", *command], stdout=subprocess.DEVNULL, env=env, check=False)
