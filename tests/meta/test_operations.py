"""The table of operations: somebody carries out each of them, commands ask only what it has, and few files name one."""

from __future__ import annotations

import ast
import inspect
import io
import re
import tokenize
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from atlasbridge.core.daemon.operations import Operations
from atlasbridge.core.daemon.rules import RuleOperations
from atlasbridge.core.operations import BY_NAME, OPERATIONS, Operation
from atlasbridge.core.schema import describe
from atlasbridge.web import channel
from atlasbridge.web.api import HANDLERS

SRC = Path(__file__).resolve().parents[2] / "src" / "atlasbridge"
BESIDE = {"place", "as_keys"}  # what the socket takes with any answer
CARRIED_OUT = [one for one in OPERATIONS if hasattr(Operations, one.key)]

# What only this operation is called, line by line: its row, its function, its words, and how it is asked.
NAMED = {
    "snooze": r"(?<![\w-])_?(?:do_)?snooze(?:_s)?(?![\w-])",
    "rename": r"rename_session|(?<![\w.])(?:def )?rename\((?!self, (?:text|sentence|login))|\"rename\"|hub\.rename\("
    r"|cli\.rename:",
    "resume": r"def resume\((?!self, (?:record|session:|session_id: str, state))|\bhub\)?\.resume\(|\)\.resume\("
    r"|\"resume\"|/resume|atlasbridge resume|cli\.resume:",
    "grant": r"\"grant\.add\"|\"grant\"|/grant\b|\bhub\.grant\(|def (?:do_)?grant\(|\b(?:parse|render)_grant\("
    r"|grant_card|\b_?rules\.add\(|\bGranted\b",
}
ELSE = {  # a line that means something else by the same word
    "rename": r"devices|device: str|@web_command|path\.rename",
    "resume": r"connection|ledger\.resume",
    "grant": r"PLACES|source\.startswith",
}
MOST = {"snooze": 8, "rename": 8, "grant": 15, "resume": 8}


def test_every_operation_is_carried_out_by_somebody() -> None:
    assert channel.HANDLERS_IN
    nobody = [
        one.name
        for one in OPERATIONS
        if not any(hasattr(kind, one.key) for kind in (Operations, RuleOperations)) and one.key not in HANDLERS
    ]
    assert nobody == []
    assert [one.name for one in OPERATIONS if one.page and one.key not in HANDLERS] == []
    assert set(HANDLERS) <= {one.key for one in OPERATIONS if one.path}


@pytest.mark.parametrize("operation", CARRIED_OUT, ids=lambda one: str(one.key))
def test_a_function_takes_what_its_declaration_says(operation: Operation[..., Any]) -> None:
    function = getattr(Operations, operation.key)
    _, *declared = inspect.signature(operation.declared).parameters.values()
    _, caller, *taken = inspect.signature(function).parameters.values()
    assert caller.name == "caller"
    wanted = [(one.name, one.default) for one in declared]
    assert [(one.name, one.default) for one in taken if one.name not in BESIDE][: len(wanted)] == [
        (name, None if default == {} else default) for name, default in wanted
    ]
    hints, given = get_type_hints(operation.declared), get_type_hints(function)
    for name, _ in wanted:
        if operation.key != "page_command":
            assert given[name] == hints[name], name


def test_every_operation_says_what_it_does_in_one_sentence_and_has_types() -> None:
    names = [one.name for one in OPERATIONS]
    assert len(names) == len(set(names))
    for operation in OPERATIONS:
        assert operation.about.endswith(".") and "\n" not in operation.about, operation.name
        components: dict[str, Any] = {}
        for parameter in operation.parameters.values():
            describe(parameter.kind, components)
        if not operation.streams:
            describe(operation.result, components)


def test_commands_ask_only_what_the_table_has() -> None:
    asked = 0
    for path in SRC.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if re.search(r"\.(ask|request|stream)\(", text) else ():
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            receiver = ast.unparse(node.func.value)
            word = node.args[0]
            if node.func.attr not in ("ask", "request", "stream") or receiver not in ("hub", "self._hub", "events"):
                continue
            if not isinstance(word, ast.Constant):
                continue
            asked += 1
            operation = BY_NAME.get(str(word.value))
            assert operation is not None, f"{path.name} asks for {word.value!r}"
            known = {*operation.parameters, *BESIDE}
            given = {one.arg for one in node.keywords if one.arg}
            assert given <= known, f"{path.name}: {word.value!r} has no {given - known}"
    assert asked > 20


def files_of(key: str) -> list[str]:
    """The files that name an operation in their code: comments and explanations do not count."""
    named, other = re.compile(NAMED[key]), re.compile(ELSE.get(key, r"$^"))
    found = []
    for path in sorted(SRC.rglob("*.py")):
        if not named.search(path.read_text(encoding="utf-8")):
            continue  # most files: reading the code of all of them takes seconds
        if any(named.search(line) and not other.search(line) for line in code_of(path)):
            found.append(str(path.relative_to(SRC)))
    return found


def code_of(path: Path) -> list[str]:
    """Its lines, without comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.string.startswith('"""')):
            for number in range(token.start[0], token.end[0] + 1):
                first = token.start[1] if number == token.start[0] else 0
                lines[number - 1] = lines[number - 1][:first]
    return lines


@pytest.mark.parametrize("key", MOST)
def test_few_files_name_an_operation(key: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A new operation is one declaration, one function and the words of its command."""
    found = files_of(key)
    with capsys.disabled():
        print(f"\n{key}: {len(found)} files: {', '.join(found)}")
    assert "core/operations.py" in found
    assert len(found) <= MOST[key]
