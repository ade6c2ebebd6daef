"""Reads dialect files: the packaged ones, signed updates of them, and a person's own, which take precedence by name.

A person's dialect is `dialects/NAME.toml`, or `adapters/NAME/dialect.toml`. It can extend a packaged dialect under a
new name or under the same name. A broken file is refused with its line and the reason: `parse_dialect` fails closed.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from atlasbridge.adapters.installed import installed_version
from atlasbridge.core.errors import DialectError
from atlasbridge.core.recognition.dialect import Dialect, Mark, MenuRule, Rule, SubjectRule, compiled, extend

TOOLS = Path(__file__).parent
FILE = "dialect.toml"
OWN_TOOLS = "adapters"
UPDATES = "dialect-updates"  # beside the person's own, written by `dialect_updates` alone
FALLBACK = "generic"
_SUFFIX = ".toml"
REGIONS = ("line", "tail", "footer", "screen", "title")
TYPES = ("yes_no", "confirm_enter", "multiple_choice", "free_text", "unknown")
KINDS = ("command", "edit", "fetch", "plan", "question", "tool", "trust")
CHOOSE = ("digit", "digit_enter", "digit_shows", "arrows", "hotkey")
T = TypeVar("T")
_remembered: dict[tuple[str, str, int, int, int], Any] = {}


def load_dialect(name: str, own_dir: Path | None = None) -> Dialect:
    """Return the dialect called `name` with everything it extends. An unknown name is an error."""
    own = _own_file(name, own_dir)
    if own is not None:
        return _complete(_read(own), own_dir, skip_own={name})
    packaged = TOOLS / name / FILE
    if not packaged.is_file():
        known = ", ".join(available(own_dir))
        raise DialectError(f"there is no dialect called {name!r}", f"Known dialects: {known}.")
    return _complete(_read(packaged), own_dir, skip_own=set())


def available(own_dir: Path | None = None) -> list[str]:
    """The names of all dialects, the person's own included."""
    packaged = _of_version(_folders_with_a_dialect, TOOLS)
    if own_dir is None:
        return sorted(packaged)
    in_folders = _folders_with_a_dialect(own_dir.parent / OWN_TOOLS)
    files = [*_list_folder(own_dir), *_list_folder(own_dir.parent / UPDATES)]
    own = {name.removesuffix(_SUFFIX) for name in files if name.endswith(_SUFFIX)}
    return sorted(packaged | in_folders | own)


def _folders_with_a_dialect(folder: Path) -> frozenset[str]:
    return frozenset(name for name in _list_folder(folder) if os.path.isfile(os.path.join(folder, name, FILE)))


def _list_folder(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _own_file(name: str, own_dir: Path | None) -> Path | None:
    """`own_dir` is the home folder's `dialects`; the folders of adapters and of updates are beside it."""
    if own_dir is None:
        return None
    home = os.path.dirname(own_dir)
    beside, updated = os.path.join(home, OWN_TOOLS, name, FILE), os.path.join(home, UPDATES, name + _SUFFIX)
    places = (os.path.join(own_dir, name + _SUFFIX), beside, updated)
    return next((Path(place) for place in places if os.path.isfile(place)), None)


def dialect_for(command: str, own_dir: Path | None = None) -> str:
    """Return the dialect that lists this executable's name. Return the generic one if none does, or if the installed
    version belongs to another program with that name."""
    program = os.path.basename(command).removesuffix(".exe")
    for name in available(own_dir):
        path = _own_file(name, own_dir) or TOOLS / name / FILE
        commands, others = _of_version(_find_claims, path)
        if program == name or f'"{program}"' in commands:
            version = installed_version(command) if others else ""
            return FALLBACK if any(re.match(other, version) for other in others if version) else name
    return FALLBACK


def _find_claims(path: Path) -> tuple[str, tuple[str, ...]]:
    """Read only the lines with the executables and with the versions of other programs, because a start must not
    parse every file."""
    lines = path.read_text("utf-8", "replace").splitlines()
    commands, others = (
        next((line for line in lines if line.startswith(key)), "") for key in ("commands", "not_versions")
    )
    return commands, tuple(re.findall(r"'([^']+)'", others))


def _of_version(read: Callable[[Path], T], path: Path) -> T:
    """Cache the content as long as the file is unchanged. Hosts inherit the cache from the fork server."""
    status = path.stat()
    key = (read.__name__, str(path), status.st_ino, status.st_mtime_ns, status.st_size)
    if key not in _remembered:
        _remembered[key] = read(path)
    found: T = _remembered[key]
    return found


def _complete(dialect: Dialect, own_dir: Path | None, skip_own: set[str]) -> Dialect:
    if dialect.extends == dialect.name:
        return extend(dialect, load_dialect(dialect.extends, None))
    if dialect.extends in skip_own:
        raise DialectError(f"dialect {dialect.name!r} extends itself", "Let it extend `generic`.")
    if dialect.extends:
        return extend(dialect, load_dialect(dialect.extends, own_dir))
    return dialect


def _read(path: Path) -> Dialect:
    try:
        return _of_version(_parse, path)
    except OSError as error:
        raise DialectError(f"{path}: cannot be read: {error}", "Check the file, or remove it.") from None


def _parse(path: Path) -> Dialect:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DialectError(f"{path}: cannot be read: {error}", "Check the file, or remove it.") from None
    dialect = parse_dialect(text, str(path), trusted=TOOLS in path.parents)
    name = path.parent.name if path.name == FILE else path.stem
    if dialect.name != name:
        raise DialectError(f"{path}: it is called {dialect.name!r}", f"Set name = {name!r}.")
    return dialect


def parse_dialect(text: str, where: str, trusted: bool = False) -> Dialect:
    """Parse a dialect from TOML; `where` names the file in errors.

    The patterns of a `trusted` (packaged, tested) text are compiled on first use, which saves 30 ms at a start.
    """
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number that is too long, and lists within lists
        raise DialectError(f"{where}: {error}", "Correct the file, or remove it to use the packaged rules.") from None
    return _Reader(text, where, trusted).dialect(data)


_WORDS = ("refuse", "always", "secret", "not_secret")
_TEXTS = ("name", "extends", "blinking", "pointers")
_LISTS = ("versions", "not_versions", "commands", "counting", "noise", "passing", "quiet_programs", "screen_programs")
_TOP: dict[str, type] = {**dict.fromkeys(_TEXTS, str), **dict.fromkeys(_LISTS, tuple)}
_PATTERNS = (
    *("pattern", "needs", "unless", "text_choice", "hotkeys", "follow", "programs", "top", "labels", "refuse", "menus"),
    *("when", "after", "first", "until", "target"),
)


class _Reader:
    """Checks every setting and reports which one is wrong, where, and why."""

    def __init__(self, text: str, where: str, trusted: bool) -> None:
        self.source = text.splitlines()
        self.where = where
        self.trusted = trusted

    def fail(self, needle: str, reason: str, skip: int = 0) -> DialectError:
        lines = [at for at, content in enumerate(self.source, 1) if content.lstrip().startswith(needle)]
        place = f"{self.where}, line {lines[: skip + 1][-1]}" if lines else self.where
        return DialectError(f"{place}: {reason}", "Correct the file, or remove it to use the packaged rules.")

    def dialect(self, data: dict[str, Any]) -> Dialect:
        known = {*_TOP, "words", "busy", "title", "rule", "menu", "subject"}
        for key in data:
            if key not in known:
                raise self.fail(key, f"unknown setting {key!r}; known are {', '.join(sorted(known))}")
        if not isinstance(data.get("name"), str) or not data["name"]:
            raise self.fail("name", "`name` must be a text")
        values: dict[str, Any] = {key: self._typed(data, key, kind) for key, kind in _TOP.items() if key in data}
        words = data.get("words", {})
        if not isinstance(words, dict):
            raise self.fail("words", "write [words] in single brackets")
        for key in words:
            if key not in _WORDS:
                raise self.fail(key, f"unknown setting words.{key!r}")
            values[key] = self._patterns(self._typed(words, key, tuple), key)
        for key in ("counting", "noise", "passing"):
            self._patterns(values.get(key, ()), key)
        values["marks"] = (*self._tables(data, "busy", Mark), *self._tables(data, "title", Mark, region="title"))
        values["rules"] = self._tables(data, "rule", Rule)
        values["menus"] = self._tables(data, "menu", MenuRule)
        values["subjects"] = self._tables(data, "subject", SubjectRule)
        return Dialect(**values)

    def _typed(self, table: dict[str, Any], key: str, kind: type) -> Any:
        value = table[key]
        if kind is tuple and isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        if kind is not tuple and isinstance(value, kind):
            return value
        raise self.fail(key, f"`{key}` must be {'a list of texts' if kind is tuple else 'a text'}")

    def _patterns(self, patterns: tuple[str, ...], key: str) -> tuple[str, ...]:
        for pattern in patterns:
            self._check_pattern(pattern, key, key, 0)
        return patterns

    def _check_pattern(self, pattern: str, name: str, needle: str, skip: int) -> None:
        if self.trusted:
            return
        try:
            compiled(pattern)
        except re.error as error:
            raise self.fail(needle, f"`{name}` is not a valid pattern: {error}", skip) from None

    def _tables(self, data: dict[str, Any], section: str, kind: type[Any], **fixed: Any) -> tuple[Any, ...]:
        tables = data.get(section, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise self.fail(f"[{section}]", f"write [[{section}]] with double brackets")
        return tuple(self._table(table, section, number, kind, fixed) for number, table in enumerate(tables))

    def _table(self, table: dict[str, Any], section: str, number: int, kind: type[Any], fixed: dict[str, Any]) -> Any:
        needle = f"[[{section}]]"
        kinds = kind.__annotations__
        for key, value in table.items():
            if key not in kinds:
                raise self.fail(needle, f"unknown setting {key!r} in [[{section}]] number {number + 1}", number)
            wanted = {"str": str, "bool": bool, "int": int, "float": (int, float)}[kinds[key]]
            if not isinstance(value, wanted):  # type: ignore[arg-type]
                raise self.fail(needle, f"`{key}` has the wrong kind of value: {value!r}", number)
        for key in _PATTERNS:
            if table.get(key):
                self._check_pattern(table[key], key, needle, number)
        if table.get("follow") and "?" not in table.get("follow_keys", ""):
            raise self.fail(needle, "`follow_keys` must say what its second dialog shows: `enter?Words enter`", number)
        for key, allowed in (("region", REGIONS), ("type", TYPES), ("choose", CHOOSE), ("kind", KINDS)):
            if key in table and table[key] not in allowed:
                raise self.fail(needle, f"`{key}` is {table[key]!r}; allowed are {', '.join(allowed)}", number)
        required = ("id", "pattern", "type", "menus", "kind")
        lacking = ", ".join(name for name in required if name in kinds and name not in table)
        if lacking:
            raise self.fail(needle, f"[[{section}]] number {number + 1} lacks {lacking}", number)
        return kind(**{**fixed, **table})
