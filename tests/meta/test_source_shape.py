"""What every module has to look like: a word about itself, no name that says nothing."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
MODULES = sorted(SRC.rglob("*.py"))
SAYS_NOTHING = {"utils", "util", "helpers", "helper", "common", "manager", "engine", "misc"}


def test_every_module_says_what_it_is_responsible_for() -> None:
    silent = [str(path.relative_to(SRC)) for path in MODULES if not ast.get_docstring(ast.parse(path.read_text()))]
    assert silent == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [str(path) for path in MODULES if SAYS_NOTHING & {path.stem, path.parent.name}] == []


def test_nothing_is_left_for_later_without_a_reason_on_its_line() -> None:
    later = re.compile(r"\b(?:TODO|FIXME|XXX)\b|raise NotImplementedError")
    wrong = [
        f"{path.relative_to(SRC)}:{number}"
        for path in MODULES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if later.search(line) and "  # " not in line
    ]
    assert wrong == []


def test_time_is_read_in_one_place() -> None:
    """ruff bans the calls; this also sees them where a line says noqa."""
    reads = re.compile(r"\btime\.(?:time|monotonic|perf_counter)\(|datetime\.(?:now|utcnow|today)\(")
    wrong = [
        f"{path.relative_to(SRC)}:{number}"
        for path in (SRC / "atlasbridge" / "core").rglob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if reads.search(line) and path.name != "clock.py"
    ]
    assert wrong == []


# Modules of one name that are the same idea in each room they stand in.
SAME_IDEA = {
    "programs",
    "__init__",
    "__main__",
    "adapter",  # a tool's class
    "prepare",  # how a tool is started
    "base",  # the class that others derive from
    "registry",
    "settings",
    "model",
    "api",  # a chat service's calls
    "channel",
    "inbound",  # what a chat says
    "setup",
    "server",
    "service",
    "wire",
    "view",
    "stream",
    "catalogue",
    "events",
    "commands",
    "reply",
    "policy",  # whom to ask, and the commands about rules
    "grants",  # a table, and the commands about it
    "later",  # what is kept for a later moment: its table, its rules and the commands about it
    "granting",  # what a grant would allow, and how a chat offers it
    "hub",
    "desk",  # what a hub offers, and the commands of a desk of many
    "outbox",  # what is still to be told
    "database",  # SQLite's for a hub, PostgreSQL's for a desk
    "link",
    "client",
    "door",
    "prompts",
    "replies",
    "sessions",
    "keyboard",
    "looks",  # how a service shows a prompt
    "people",  # whom a name means; how a chat calls them; the command that lists them
    "attention",  # a table of the configuration and what is made of it
}
# Classes of one name: a configuration's table and what is made of it, a chat's own part, the same word of two rooms.
SAME_WORD = {
    *("Dialog", "Told", "Stillness", "Grant", "Hub", "Retention", "Launcher", "Client", "Person", "Database"),
    *("Doors", "Memory", "Inbound", "Origin", "Listener", "Link", "Body", "Token"),
    *("Strangers", "Refused", "Outcome", "Caller", "Call", "HubServer", "Line", "Moment", "Door", "Walk", "Process"),
    *("Confidence", "PromptEvent", "Session"),  # as two documents write them, each in its own way
}


def _doubles(names: list[str]) -> set[str]:
    return {name for name in names if names.count(name) > 1}


def test_no_two_modules_have_one_name_unless_they_are_the_same_idea() -> None:
    assert _doubles([path.stem for path in (SRC / "atlasbridge").rglob("*.py")]) <= SAME_IDEA


def test_no_two_classes_have_one_name_unless_it_is_the_same_word() -> None:
    classes = [
        node.name
        for path in (SRC / "atlasbridge").rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert _doubles(classes) <= SAME_WORD
