"""How tests are written: they wait for conditions, not for time, and look at what is shown to everybody.

Each list here only ever gets shorter.  A test that needs the inside of a thing wants a seam in the product; a test that
waits wants `tests/support/waiting.py`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.support import warm
from tests.support.hubs import HubProcess, short_home

pytestmark = pytest.mark.lint

TESTS = Path(__file__).resolve().parents[1]
FILES = sorted(path for path in TESTS.rglob("*.py") if path.parts[len(TESTS.parts)] not in ("benchmarks", "torture"))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


LOOPS = (ast.While, ast.For, ast.AsyncFor)
OF_OTHERS = {
    "_exit",
    "_ntuple_diskusage",
    "_req",
    "_IOBase",
    "_tmp_path_factory",
    "_global_capturing",
}  # private to Python and to libraries, not to us

# Pauses that are what is tested or played: a slow network, a busy program, a second that passes.
PAUSES: dict[str, int] = {
    "ptypool/test_specification_examples.py": 1,
    "support/fake_ntfy.py": 1,
    "support/fake_server.py": 2,
    "prompt_lab/test_scenarios.py": 1,  # as the document's own scenario does
    "channels/test_telegram_channel.py": 1,  # longer than an edit of the time that is left takes to come
    "support/hostile_tool.py": 5,  # the hub looks meanwhile, and nothing tells the attacker when
}
# Looks at the inside, by file; anyone who takes one away takes its number down.
INSIDE: dict[str, int] = {
    "web/test_web_lan.py": 3,
    "web/test_web_push.py": 2,
    "core/detection/test_detector_lines.py": 2,
    "core/host/test_hub_link.py": 1,
    "core/policy/test_plain.py": 1,
    "core/screen/test_screen_beside.py": 3,
    "core/test_patterns.py": 1,
    "integrations/test_client_http.py": 1,
    "fire/test_between_the_keys.py": 2,
    "os/test_probe_macos.py": 3,
    "ptypool/integration/test_ptypool_cleanup.py": 1,
    "ptypool/integration/test_ptypool_session.py": 1,
    "ptypool/test_specification_examples.py": 1,
    "specification/test_classes_of_the_documents.py": 1,  # a name that the document itself uses
    "support/hostile_streams.py": 1,
}
# Limits of time that are what is tested.  Any other is pytest's (`timeout` in pyproject.toml): a busy machine needs it.
LIMITS: dict[str, int] = {
    "channels/test_slack_channel.py": 1,
    "channels/test_telegram_faults.py": 1,
    "web/test_web_api.py": 1,
    "web/test_web_floods.py": 1,
    "web/test_web_push.py": 1,
}
LIMIT = re.compile(
    r"\.(?:wait|join|result)\((?:timeout=)?\d\d+\)|asyncio\.timeout\(\d\d+\)|asyncio\.wait_for\(.*, \d\d+\)"
)


def with_words(*words: str) -> list[Path]:
    """The files in which one of these words occurs: a walk through all of them takes seconds."""
    return [path for path in FILES if any(word in path.read_text("utf-8") for word in words)]


def name_of(path: Path) -> str:
    return str(path.relative_to(TESTS))


def pauses(tree: ast.AST, in_loop: bool = False) -> Iterator[int]:
    """Where a test sleeps for a fixed time outside any loop; sleep(0) only lets others go on."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sleep":
            given = node.args[0] if node.args else None
            if not in_loop and isinstance(given, ast.Constant) and given.value:
                yield node.lineno
        own = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from pauses(node, isinstance(node, LOOPS) or (in_loop and not own))


def inside(tree: ast.AST) -> Iterator[int]:
    """Where a test takes a private name of something else than itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(("atlasbridge", "ptypool")):
            yield from (node.lineno for alias in node.names if is_private(alias.name))
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in OF_OTHERS:
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            yield from () if own else (node.lineno,)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_tests_wait_for_conditions() -> None:
    found = {name_of(path): len(list(pauses(parsed(path)))) for path in with_words("sleep(")}
    assert {name: count for name, count in found.items() if count} == PAUSES


def test_a_test_has_no_limit_of_its_own() -> None:
    found = {
        name_of(path): len(LIMIT.findall(path.read_text("utf-8")))
        for path in FILES
        if path.name.startswith("test_") and path.parent.name not in ("tools", "windows")
    }
    assert {name: count for name, count in found.items() if count} == LIMITS


def read_before_written(tree: ast.AST) -> Iterator[int]:
    """Where a test waits for a file to be there and then reads it: a file is there before its words are."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
        waits = [
            call for call in calls if ast.unparse(call.func).rpartition(".")[2] in ("wait_for", "wait_until", "until")
        ]
        awaited = {}
        for call in waits:
            for looked in _attributes(call, "exists", "is_file"):
                if not any(ast.unparse(read.value) == looked for read in _reads(call)):
                    awaited[looked] = call.lineno
        yield from (
            read.lineno for read in _reads(function) if read.lineno > awaited.get(ast.unparse(read.value), read.lineno)
        )


def _attributes(node: ast.AST, *names: str) -> Iterator[str]:
    found = (one for one in ast.walk(node) if isinstance(one, ast.Attribute) and one.attr in names)
    return (ast.unparse(one.value) for one in found)


def _reads(node: ast.AST) -> Iterator[ast.Attribute]:
    read = ("read_text", "read_bytes")
    return (one for one in ast.walk(node) if isinstance(one, ast.Attribute) and one.attr in read)


def test_nothing_is_read_before_it_is_written() -> None:
    """`written` of tests/support/waiting.py waits for the words."""
    found = {name_of(path): list(read_before_written(parsed(path))) for path in with_words("exists", "is_file")}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_tests_look_at_what_is_shown_to_everybody() -> None:
    hinted = [
        path for path in FILES if re.search(r"(\.|import .*|^\s+)_[a-zA-Z]", path.read_text("utf-8"), re.MULTILINE)
    ]
    found = Counter(name_of(path) for path in hinted for _ in inside(parsed(path)))
    assert dict(found) == INSIDE


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every hub starts cold")
def test_a_hub_of_a_test_is_forked_from_a_process_that_has_imported_everything() -> None:
    """A cold one costs six times as much, and hundreds are started."""
    with short_home() as home:
        assert warm.may_fork((), HubProcess(home).environ)
