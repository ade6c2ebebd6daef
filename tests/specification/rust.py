"""Turns the Rust of the at-session document into Python, so that its examples run as they are written.

Only the syntax changes: `?` is an exception, `.await` is `await`, a `match` on a result is a `match` on what the call
returned or raised. Every call, its order and its arguments stay those of the document.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from ptypool.cli_adapter import CliType, adapter_for
from ptypool.pty_pool import PtyError, PtyPool


@dataclass
class Ok:
    value: Any


@dataclass
class Err:
    error: Any


def result(call: Callable[[], Any]) -> Ok | Err:
    try:
        return Ok(call())
    except PtyError as error:
        return Err(error)


def names(said: list[str], sleep_s: float) -> dict[str, Any]:
    """What the examples import; each sleep of theirs lasts as long as the test wants."""

    async def sleep(_: timedelta) -> None:
        await asyncio.sleep(sleep_s)

    duration = SimpleNamespace(
        from_secs=lambda count: timedelta(seconds=count),
        from_millis=lambda count: timedelta(milliseconds=count),
    )
    return {
        "PtyPool": PtyPool,
        "PtyError": PtyError,
        "CliType": CliType,
        "adapter_for": adapter_for,
        "Duration": duration,
        "String": SimpleNamespace(from_utf8_lossy=lambda data: data.decode(errors="replace")),
        "tokio": SimpleNamespace(time=SimpleNamespace(sleep=sleep)),
        "std": SimpleNamespace(time=SimpleNamespace(Duration=duration)),
        "Ok": Ok,
        "Err": Err,
        "result": result,
        "say": said.append,
    }


def python(rust: str) -> str:
    lines, depth = [], 0
    for statement in _statements(rust):
        if statement.startswith("}"):
            depth -= 1
        elif statement and not statement.startswith(("use ", "#[")):
            lines.append("    " * depth + _statement(statement))
        depth += statement.endswith("{")
    return "\n".join(lines) + "\n"


def _statements(rust: str) -> list[str]:
    """One to a line: a call over several lines is joined."""
    found, part = [], ""
    for line in re.sub(r"//.*", "", rust).splitlines():
        part += line.strip()
        if part.count("(") <= part.count(")"):
            found.append(part)
            part = ""
    return found


def _statement(text: str) -> str:
    text = text.removesuffix("{").rstrip().rstrip(";").replace("::", ".").replace("!(", "(")
    text = re.sub(r"&(?=[\w\[])", "", text)
    if found := re.match(r"(async )?fn (\w+)\((.*?)\)", text):
        return f"{found[1] or ''}def {found[2]}({re.sub(r': *[^,]+', '', found[3])}):"
    if found := re.match(r"e?println\((\".*?\"), ?(.*)\)$", text):
        return f"say({found[1]}.format({found[2]}))"
    if text == "loop":
        return "while True:"
    if found := re.match(r"match (.*)", text):
        return f"match result(lambda: {found[1]}):"
    if found := re.match(r"(.*?) => *(.*?),?$", text):
        pattern = re.sub(r"\.(\w+) \{ max \}", r".\1(max=max)", found[1])
        pattern = re.sub(r"\.(\w+)\((\w+)\)\)$", r".\1() as \2)", pattern)
        return f"case {pattern}: " + {"": "", "unreachable()": "raise AssertionError"}.get(
            found[2], f"return {found[2]}"
        ).replace(".into()", "")
    if found := re.match(r"if let Some\((\w+)\) = (.*)", text):
        return f"if ({found[1]} := {_awaited(found[2])}) is not None:"
    if found := re.match(r"if (.*)", text):
        return f"if {found[1].replace('||', 'or').replace('!h', 'not h')}:"
    if found := re.match(r"drop\((\w+)\)", text):
        return f"del {found[1]}"
    if re.match(r"(Ok|Err)\(", text):
        return "return " + text.replace("(())", "(None)").replace(".into()", "")
    if found := re.match(r"let (?:mut )?(\w+) = (.*)", text):
        return f"{found[1]} = {_awaited(found[2])}"
    return ("return " if text.startswith("spawn_with_retry") else "") + _awaited(text)


def _awaited(expression: str) -> str:
    plain = expression.removesuffix("?")
    return f"await {plain.removesuffix('.await')}" if plain.endswith(".await") else plain
