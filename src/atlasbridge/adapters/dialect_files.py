"""Reads dialect files: each tool's, and a person's own in the home folder, which win by name.

A person's own is `dialects/NAME.toml`, or `adapters/NAME/dialect.toml` in a tool's whole folder.  It
may also extend a packaged dialect under a new name, or under the same name.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from atlasbridge.core.errors import DialectError
from atlasbridge.core.recognition.dialect import Dialect, extend, parse_dialect

TOOLS = Path(__file__).parent
FILE = "dialect.toml"
OWN_TOOLS = "adapters"
FALLBACK = "generic"
_SUFFIX = ".toml"
T = TypeVar("T")
_remembered: dict[tuple[str, str, int, int, int], Any] = {}


def load_dialect(name: str, own_dir: Path | None = None) -> Dialect:
    """The dialect called `name` with everything it extends; an unknown name is an error."""
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
    own = {name.removesuffix(_SUFFIX) for name in _listed(own_dir) if name.endswith(_SUFFIX)}
    return sorted(packaged | in_folders | own)


def _folders_with_a_dialect(folder: Path) -> frozenset[str]:
    return frozenset(name for name in _listed(folder) if os.path.isfile(os.path.join(folder, name, FILE)))


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _own_file(name: str, own_dir: Path | None) -> Path | None:
    """`own_dir` is the home folder's `dialects`; a tool's whole folder stands beside it."""
    if own_dir is None:
        return None
    beside = os.path.join(os.path.dirname(own_dir), OWN_TOOLS, name, FILE)
    places = (os.path.join(own_dir, name + _SUFFIX), beside)
    return next((Path(place) for place in places if os.path.isfile(place)), None)


def dialect_for(command: str, own_dir: Path | None = None) -> str:
    """The dialect that claims this executable's name; the generic one when none does."""
    program = os.path.basename(command).removesuffix(".exe")
    for name in available(own_dir):
        path = _own_file(name, own_dir) or TOOLS / name / FILE
        if program == name or f'"{program}"' in _commands_line(path):
            return name
    return FALLBACK


def _commands_line(path: Path) -> str:
    """Only the line that lists the executables: a start must not parse every file."""
    return _of_version(_find_commands_line, path)


def _find_commands_line(path: Path) -> str:
    return next((line for line in path.read_text("utf-8", "replace").splitlines() if line.startswith("commands")), "")


def _of_version(read: Callable[[Path], T], path: Path) -> T:
    """What a file says, remembered as long as it is the same file: whoever forks hosts has read it for all of them."""
    told = path.stat()
    key = (read.__name__, str(path), told.st_ino, told.st_mtime_ns, told.st_size)
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
