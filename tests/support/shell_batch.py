"""Many commands parsed in few processes: which can be parsed, then all of those in one tree that is cut again."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from atlasbridge.core.routing.shell_parser import find_shfmt, read_tree

_MARK = "end-of-command-"


def parse_all(commands: Sequence[str], folder: Path) -> dict[str, dict[str, Any] | None]:
    names = {}
    for number, text in enumerate(commands):
        (folder / f"{number}.sh").write_bytes(text.encode("utf-8", "surrogatepass"))
        names[f"{number}.sh"] = text
    checked = subprocess.run(
        [find_shfmt(), "-ln", "bash", "-l", *names], cwd=folder, capture_output=True, text=True, errors="replace"
    )
    bad = set(re.findall(r"^(\d+\.sh):\d+:\d+:", checked.stderr, re.M))
    trees: dict[str, dict[str, Any] | None] = {names[name]: None for name in bad}
    good = [text for name, text in names.items() if name not in bad]
    trees |= _parse_joined([text for text in good if not text.endswith("\\")])
    trees |= {text: _parse_one(text) for text in good if text.endswith("\\")}  # the next line would be its own
    return trees


def _parse_joined(commands: Sequence[str]) -> dict[str, dict[str, Any] | None]:
    source = "".join(f"{text}\n: {_MARK}{number}\n" for number, text in enumerate(commands))
    tree = _parse_one(source)
    if tree is None:
        return {text: _parse_one(text) for text in commands}
    found: dict[str, dict[str, Any] | None] = {}
    pending: list[Any] = []
    for statement in tree.get("Stmts") or ():
        number = _mark(statement)
        if number is None:
            pending.append(statement)
            continue
        rest = {"Comments": comments} if (comments := statement.get("Comments")) else {}
        if rest:  # comments before the mark are the command's own
            pending.append({"Comments": comments})
        found[commands[number]] = {"Type": "File", "Stmts": pending}
        pending = []
    # a command that swallowed the mark after it, and the one behind it that got its rest, are parsed by themselves
    return found if len(found) == len(commands) else {text: _parse_one(text) for text in commands}


def _mark(statement: dict[str, Any]) -> int | None:
    args: Sequence[dict[str, Any]] = (statement.get("Cmd") or {}).get("Args") or ()
    parts = args[1].get("Parts") if len(args) == 2 else ()
    value = str(parts[0].get("Value", "")) if parts else ""
    return int(value.removeprefix(_MARK)) if value.startswith(_MARK) else None


def _parse_one(text: str) -> dict[str, Any] | None:
    done = subprocess.run(
        [find_shfmt(), "-ln", "bash", "--to-json"], input=text.encode("utf-8", "surrogatepass"), capture_output=True
    )
    return read_tree(done.stdout) if done.returncode == 0 else None
