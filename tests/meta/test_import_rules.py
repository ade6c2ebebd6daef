"""Who may import whom, as docs/architecture.md says.  Every import counts, inside functions, too."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.lint

SRC = Path(__file__).resolve().parents[2] / "src"
OURS = ("atlasbridge", "ptypool")

# what a part of atlasbridge may import of the other parts
MAY_IMPORT = {
    "cli": {"cli", "bootstrap", "config", "core", "integrations", "lab", "fleet"},
    "bootstrap": {"adapters", "channels", "os", "config", "core", "lab", "fleet"},
    "config": {"config", "core"},
    "adapters": {"adapters", "core", "os"},  # an adapter stands on the system's terminal
    "channels": {"channels", "core"},
    "integrations": {"integrations", "core"},
    "fleet": {"fleet", "web", "channels", "core"},  # the server shows the same page and asks in the same chats
    "web": {"web", "channels", "core"},  # the page is one of the channels
    "client": {"integrations", "core"},
    "os": {"os", "core", "ptypool"},
    "lab": {"lab", "adapters", "core", "os", "ptypool"},
    "specification": {"specification", "adapters", "channels", "config", "core", "lab", "os"},  # aliases, for readers
    "core": {"core"},
    "__main__": {"cli"},
}
# a program's entry, imported by nobody, must reach the composition root
EXEMPT = {("core/daemon/__main__.py", "bootstrap")}

HOME_OF = {
    "click": {"cli"},
    "httpx": {"channels", "web", "fleet/server"},
    "authlib": {"fleet/server"},
    "joserfc": {"fleet/server"},
    "starlette": {"web", "fleet/server"},
    "uvicorn": {"web", "fleet/server"},
    "psycopg": {"fleet/server"},
    "psycopg_pool": {"fleet/server"},
    "uvloop": {"fleet/server"},
    "prometheus_client": {"fleet/server"},
    "wsproto": {"fleet"},
    "opentelemetry": {"os"},
    "cryptography": {"fleet", "web", "adapters"},
    "slack_sdk": {"channels/slack"},
    "aiohttp": {"channels/slack", "channels/discord"},
    "apprise": {"channels"},
    "webauthn": {"core/audit"},
    "pydantic": {"config", "channels", "web"},
    "sqlite3": {"core/store"},
    "ptyprocess": set(),
}
PURE = (
    "core/screen",
    "core/prompt",
    "core/recognition",
    "core/detection",
    "core/policy",
    "core/routing/policy.py",
    "core/audit/chain.py",
)
IMPURE = {"asyncio", "sqlite3", "socket", "os", "time", "logging", "threading", "subprocess", "select", "datetime"}


def modules(package: str) -> list[str]:
    return sorted(str(path.relative_to(SRC / package)) for path in (SRC / package).rglob("*.py"))


@cache
def imports(package: str, name: str) -> tuple[str, ...]:
    return tuple(read_imports(SRC / package / name))


def read_imports(path: Path) -> Iterator[str]:
    """Every module that is named in an import, wherever it stands; relative imports are made absolute."""
    package = ".".join(path.relative_to(SRC).with_suffix("").parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = package.rsplit(".", node.level - 1)[0] + "." if node.level else ""
            module = (parent + (node.module or "")).rstrip(".")
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "import_module":
            yield from (str(word.value) for word in node.args if isinstance(word, ast.Constant))


def part_of(module: str) -> str:
    """The part a dotted name belongs to: "core", "channels", ..., "ptypool", or "" for the package itself."""
    words = module.split(".")
    if words[0] == "ptypool":
        return "ptypool"
    return words[1] if len(words) > 1 and (SRC / "atlasbridge" / words[1]).exists() else _module(words)


def _module(words: list[str]) -> str:
    return words[1] if len(words) > 1 and (SRC / "atlasbridge" / f"{words[1]}.py").exists() else ""


def test_a_part_imports_only_what_it_may() -> None:
    wrong = []
    for name in modules("atlasbridge"):
        part = name.split("/")[0].removesuffix(".py")
        allowed = MAY_IMPORT.get(part, set()) | {"", part}
        ours = {part_of(module) for module in imports("atlasbridge", name) if module.split(".")[0] in OURS}
        wrong += [f"{name} imports {found}" for found in ours - allowed if (name, found) not in EXEMPT]
    assert wrong == []


# What stands directly in `core` and in no floor below is the ground: it imports only its like.
FLOORS: tuple[set[str], ...] = (
    {"screen"},
    {"prompt"},
    {"recognition"},
    {"detection"},
    {"session"},
    {"policy"},
    {"ports", "operations"},
    {"host", "routing", "scheduler", "store", "audit"},
    {"daemon", "client"},
)
FLOOR_OF = {room: number for number, floor in enumerate(FLOORS, 1) for room in floor}


def rooms() -> dict[str, set[str]]:
    """Each package or module that stands directly in `core`, and what it imports of the others."""
    found: dict[str, set[str]] = {}
    for name in modules("atlasbridge"):
        if name.startswith("core/") and name != "core/__init__.py":
            room = name.split("/")[1].removesuffix(".py")
            words = [module.split(".") for module in imports("atlasbridge", name)]
            needed = {word[2] for word in words if word[:2] == ["atlasbridge", "core"] and len(word) > 2}
            found.setdefault(room, set()).update(needed - {room})
    return found


def test_nothing_in_core_imports_upwards() -> None:
    upwards = [
        f"{room} imports {needed}"
        for room, others in rooms().items()
        for needed in others
        if FLOOR_OF.get(needed, 0) > FLOOR_OF.get(room, 0)
    ]
    assert upwards == []


def test_no_two_packages_stand_in_a_circle() -> None:
    needs = rooms()
    while leaves := [room for room, others in needs.items() if not others & needs.keys()]:
        for room in leaves:
            del needs[room]
    assert needs == {}, "these need each other"


def test_each_third_party_package_has_one_home() -> None:
    wrong = []
    for name in modules("atlasbridge"):
        for module in imports("atlasbridge", name):
            homes = HOME_OF.get(module.split(".")[0])
            if homes is not None and not any(name.startswith(f"{home}/") for home in homes):
                wrong.append(f"{name} imports {module}")
    assert wrong == []


def test_the_heart_is_pure() -> None:
    wrong = []
    for name in modules("atlasbridge"):
        if name.startswith(PURE):
            tops = {module.split(".")[0] for module in imports("atlasbridge", name)}
            third_party = tops - set(sys.stdlib_module_names) - {"atlasbridge"}
            wrong += [f"{name} imports {found}" for found in (tops & IMPURE) | third_party]
    assert wrong == []


def test_ptypool_knows_nothing_of_atlasbridge() -> None:
    for name in modules("ptypool"):
        tops = {module.split(".")[0] for module in imports("ptypool", name)}
        assert tops <= set(sys.stdlib_module_names) | {"ptypool", "winpty"}, name


def test_the_rule_sees_imports_inside_functions_and_under_type_checking() -> None:
    found = imports("atlasbridge", "bootstrap.py")
    assert any(module.startswith("atlasbridge.channels.registry") for module in found)
    assert any(module.startswith("atlasbridge.core.ports") for module in found)


BOUNDARIES = (
    "the session boundary",
    "the channel boundary",
    "the CLI boundary",
    "the boundary to a foreign",
    "the boundary between decisions",
)


def test_only_the_boundaries_of_contributing_catch_everything() -> None:
    """Each says on its line which one it is."""
    wrong = []
    for path in sorted((SRC / "atlasbridge").rglob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if "except Exception" in line and not any(one in line for one in BOUNDARIES):
                wrong.append(f"{path.relative_to(SRC)}:{number}")
    assert wrong == []
