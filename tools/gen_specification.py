"""Writes docs/reference/specification.md from docs/specification.toml: `python tools/gen_specification.py`.

A test compares the page with what this prints, and looks for every test that the list names.
"""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "docs" / "specification.toml"
PAGE = ROOT / "docs" / "reference" / "specification.md"
PTYPOOL_EXAMPLES = "tests/ptypool/test_specification_examples.py"
STATES = {"works": "works", "differs": "differs knowingly", "part": "in part", "missing": "missing"}
_HEAD = """# The specification, item by item

Made from `docs/specification.toml`; a test looks for every test that is named here. Five design documents describe
AtlasBridge: on reliability, on the architecture, on the Claude adapter, on the frozen adapter interface, on terminal
sessions (`ptypool`). Listed is what they demand, section by section; "in part" and "missing" say what is not shown.
Every example of the documents (imports, calls, command lines, configuration, diagrams) is kept verbatim in
`tests/specification/examples.md` and run against a real hub or terminal. Where a section has an example, an item of it
"works" only if it names a test that runs an example of that document (marked `▶`); what a document says without an
example is shown by the tests that are named.
"""


def requirements() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(LIST.read_text("utf-8"))["requirement"]
    return found


@cache
def example_tests() -> dict[str, set[str]]:
    """The tests that run examples (`@example("architecture", 4)`), by document."""
    found: dict[str, set[str]] = defaultdict(set)
    for file in [*(ROOT / "tests" / "specification").glob("test_*.py"), ROOT / PTYPOOL_EXAMPLES]:
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for mark in node.decorator_list:
                    if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "example":
                        found[ast.literal_eval(mark.args[0])].add(f"{file.relative_to(ROOT)}::{node.name}")
    return found


def rests_on_an_example(item: dict[str, Any]) -> bool:
    return bool(example_tests()[item["document"]] & set(item["tests"]))


def render_page() -> str:
    items = requirements()
    counted = [f"{sum(item['state'] == state for item in items)} {words}" for state, words in STATES.items()]
    by_example = sum(item["state"] == "works" and rests_on_an_example(item) for item in items)
    counts = f"{len(items)} items: {', '.join(counted)}. {by_example} of those that work rest on an example."
    parts = [_HEAD, counts, "", *_by_document(items)]
    for document in dict.fromkeys(item["document"] for item in items):
        parts += [
            "",
            f"## {document[0].upper()}{document[1:]}",
            "",
            "| section | what | state | shown by |",
            "|---|---|---|---|",
        ]
        parts += [_row(item) for item in items if item["document"] == document]
    return "\n".join(parts) + "\n"


def _by_document(items: list[dict[str, Any]]) -> list[str]:
    head = ["| document | " + " | ".join(STATES.values()) + " |", "|---|" + "---|" * len(STATES)]
    rows = []
    for document in dict.fromkeys(item["document"] for item in items):
        states = [item["state"] for item in items if item["document"] == document]
        rows.append(f"| {document} | " + " | ".join(str(states.count(state)) for state in STATES) + " |")
    return head + rows


def _row(item: dict[str, Any]) -> str:
    state = STATES[item["state"]] + (f". {item['note']}" if item.get("note") else "")
    runs = example_tests()[item["document"]]
    shown = "<br>".join(f"{'▶ ' * (test in runs)}`{test.removeprefix('tests/')}`" for test in item["tests"])
    return f"| {item['section']} | {item['says']} | {state} | {shown} |".replace("  ", " ")


if __name__ == "__main__":
    PAGE.write_text(render_page(), encoding="utf-8")
