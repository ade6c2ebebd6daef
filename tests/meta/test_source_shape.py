"""What every module has to look like: a word about itself, a name that says something, the words of the field."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

pytestmark = pytest.mark.lint

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


def test_sql_has_no_numbered_placeholders() -> None:
    """Python 3.12.0 to 3.12.3 take `?1` for a named one, and warn of it with a sequence."""
    numbered = re.compile(r"\b(?:SELECT|INSERT|UPDATE|DELETE|WHERE|AND|OR|SET|VALUES)\b.*\?\d", re.DOTALL)
    wrong = [
        f"{path.relative_to(SRC)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and numbered.search(node.value)
    ]
    assert wrong == []


# Words of our own that the field has a better one for; docs/glossary.md has those that are left.
PRIVATE_WORDS = {
    *("desk", "desks", "kin", "kinship", "household", "kindred", "ladder", "ladders", "rung", "rungs", "climb"),
    *("courier", "couriers", "errand", "errands", "janitor", "inlet", "inlets"),
    *("notebook", "crowd", "readout", "sparing", "chronicle", "rulebook", "uplink", "belonging", "onlooker"),
    *("discreet", "entrusted", "afar", "wellbeing", "reception", "departed", "stagehand", "logbook"),
    *("door", "doors", "lane", "lanes", "office", "visitor", "nursery", "rehearsal"),
}


def _words(name: str) -> set[str]:
    return {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def test_no_comment_and_no_text_uses_a_word_of_the_list() -> None:
    """`make lint` checks the documents with the same list. A name of a test or a variable is not checked here."""
    words = [line.partition("->")[0] for line in (ROOT / "tools/words_not_used.txt").read_text().splitlines()]
    unused, wrong = re.compile("|".join(rf"\b{word}\b" for word in words), re.IGNORECASE), []
    for path in (path for folder in ("src", "tests", "tools", "examples") for path in (ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if path == Path(__file__).resolve() or not unused.search(text):
            continue
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING) and (found := unused.search(token.string)):
                wrong.append(f"{path.relative_to(ROOT)}:{token.start[0]}: {found[0]}")
    assert wrong == []


def _names(tree: ast.AST) -> set[str]:
    """Every name that a module defines: functions, classes, arguments, variables, attributes of `self`."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


def test_no_name_in_src_uses_a_private_word() -> None:
    wrong = []
    for path in MODULES:
        names = _names(ast.parse(path.read_text(encoding="utf-8"))) | set(path.relative_to(SRC).with_suffix("").parts)
        wrong += [f"{path.relative_to(SRC)}: {name}" for name in sorted(names) if _words(name) & PRIVATE_WORDS]
    for path in SRC.rglob("*.js"):
        code = re.sub(r"//.*|\"[^\"\n]*\"|'[^'\n]*'", "", path.read_text(encoding="utf-8"))
        names = set(re.findall(r"[A-Za-z_]+", code))
        wrong += [f"{path.relative_to(SRC)}: {name}" for name in sorted(names) if _words(name) & PRIVATE_WORDS]
    assert wrong == []


EXAMPLES = {"tests/test_a.py", "src/version.py", "adapter.py", "check.py", "socket.py"}  # other people's files


def test_texts_name_files_and_modules_that_exist() -> None:
    """A path such as `core/prompt/gate.py` or `gate.py`, and a module such as `core.peer`, in source and documents."""
    files = {f"/{path.relative_to(ROOT)}" for path in ROOT.rglob("*.py") if ".venv" not in path.parts}
    modules = {".".join(path.relative_to(SRC).with_suffix("").parts[1:]) for path in MODULES}
    documents = [path for path in ROOT.rglob("docs/**/*.md") if path.name != "specification.md"]
    named = re.compile(r"(?<![\w/.<>*{-])((?:[a-z_]+/)+[a-z_]+\.py|(?<=`)[a-z_]+\.py(?=`))|`(core(?:\.[a-z_]+)+)`")
    wrong = []
    for path in (*MODULES, *documents, *ROOT.glob("[A-Z]*.md")):
        for file, module in named.findall(path.read_text("utf-8")):
            known = any(one.endswith(f"/{file}") for one in files) if file else module in modules
            if not known and file not in EXAMPLES and not any(one.startswith(f"{module}.") for one in modules):
                wrong.append(f"{path.relative_to(ROOT)}: {file or module}")
    assert wrong == []


def test_texts_name_attacks_and_benchmarks_that_exist() -> None:
    """`python -m tests.torture NAME`, and the tables of docs/reliability.md."""
    tables = re.findall(r"^\| `([a-z_]+)`", (ROOT / "docs/reliability.md").read_text("utf-8"), re.MULTILINE)
    named = {("torture", name) for name in tables}
    for path in (*ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/**/*.py"), ROOT / "Makefile"):
        named |= set(re.findall(r"-m tests\.(torture|benchmarks)[. ]([a-z_]+)", path.read_text("utf-8")))
    assert len(named) > 20
    assert [f"{room}/{name}" for room, name in sorted(named) if not (ROOT / f"tests/{room}/{name}.py").exists()] == []
