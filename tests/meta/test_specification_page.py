"""The list of the specification's promises: current as a page, and every test that it names is there."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tools.gen_specification import PAGE, STATES, render_page, requirements, rests_on_an_example

ROOT = Path(__file__).parents[2]
ITEMS = requirements()


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_the_page_is_current() -> None:
    assert PAGE.read_text("utf-8") == render_page(), "run: make reference"


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: f"{item['document']}: {item['says'][:40]}")
def test_an_item_has_a_state_and_tests_that_exist(item: dict[str, Any]) -> None:
    assert item["state"] in STATES
    assert bool(item["tests"]) == (item["state"] != "missing"), (
        "what is not missing has a test, what is missing has none"
    )
    assert item["state"] == "works" or item.get("note"), "whatever does not simply work says why"
    for test in item["tests"]:
        file, _, function = test.partition("::")
        assert (ROOT / file).is_file(), file
        assert not function or function in functions(file), test


def test_every_document_is_listed() -> None:
    documents = {item["document"] for item in ITEMS}
    assert documents == {"at-session", "reliability", "architecture", "Claude adapter", "adapter interface"}


SECTIONS = {  # of each document, those that demand something
    "reliability": range(1, 9),
    "architecture": range(1, 14),
    "Claude adapter": range(1, 10),
    "adapter interface": range(1, 10),
}


@pytest.mark.parametrize("document", SECTIONS)
def test_every_numbered_section_of_a_document_is_listed(document: str) -> None:
    listed = {int(item["section"].split(".")[0]) for item in ITEMS if item["document"] == document}
    assert listed == set(SECTIONS[document])


def test_what_is_said_to_work_is_shown_by_a_test_and_not_by_a_measurement_alone() -> None:
    shown = {item["says"]: item["tests"] for item in ITEMS if item["state"] == "works"}
    assert [says for says, tests in shown.items() if all("/benchmarks/" in test for test in tests)] == []


def test_nothing_is_listed_twice() -> None:
    said = [(item["document"], item["section"], item["says"]) for item in ITEMS]
    assert len(said) == len(set(said))


EXAMPLES = "tests/specification/test_examples.py"


def test_every_test_of_an_example_is_named_by_the_list() -> None:
    named = {test for item in ITEMS for test in item["tests"]}
    tests = {name for name in functions(EXAMPLES) if name.startswith("test_")} - {
        "test_every_example_is_named_by_a_test"
    }
    assert {f"{EXAMPLES}::{name}" for name in tests} - named == set()


def test_what_is_said_to_work_is_shown_by_a_named_test_that_does_more_than_import_a_name() -> None:
    imports = "tests/specification/test_names.py::test_what_a_document_names_can_be_imported"
    weak = [
        item["says"]
        for item in ITEMS
        if item["state"] == "works" and not [test for test in item["tests"] if "::" in test and test != imports]
    ]
    assert weak == []


WITH_EXAMPLES = {  # the beginnings of the sections that have a block of code, a command line, a file or a diagram
    "reliability": (
        "2. Four tasks",
        "2. pty_reader",
        "2. stdin_relay",
        "2. stall_watchdog",
        "2. response_consumer",
        "2. Injection gate",
        "3. Gating criteria",
        "4. Combination",
        "4. Ambiguity protocol",
        "5. Prompt Lab",
        "7. Regression",
    ),
    "architecture": (
        *("2. ", "3. Components", "4.2", "4.6", "5.4", "5.5", "5.6", "5.7", "6. ", "7.1", "7.2", "7.3", "7.5"),
        *("8.1", "9.1", "9.4", "10.1", "10.3", "10.5"),
    ),
    "Claude adapter": ("2. ", "3.2 Patterns", "4.1", "4.2", "7. "),
    "adapter interface": ("2. ", "4. ", "5. ", "6.2", "7. ", "8. New adapters", "9. "),
    "at-session": (
        *("PtyPool", "PtyHandle", "Channel Protocol", "PTY Lifecycle", "PtyError Types", "CLI Adapters"),
        *("Usage Examples", "Implementation Details", "Testing"),
    ),
}


def test_where_a_document_has_an_example_only_that_example_makes_an_item_work() -> None:
    without = [
        f"{item['document']}: {item['section']}: {item['says']}"
        for item in ITEMS
        if item["state"] == "works"
        and item["section"].startswith(WITH_EXAMPLES[item["document"]])
        and not rests_on_an_example(item)
    ]
    assert without == []
