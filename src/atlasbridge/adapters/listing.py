"""The data of `atlasbridge adapters`: for every tool the origin of its adapter, its rules and its verified versions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from atlasbridge.adapters.dialect_files import UPDATES, available, load_dialect
from atlasbridge.adapters.installed import installed_version
from atlasbridge.adapters.registry import GROUP, AdapterRegistry
from atlasbridge.adapters.tool_start import MODULE
from atlasbridge.core.errors import AdapterError, DialectError
from atlasbridge.core.process import own_environ, own_python

# Finds broken adapters and the reasons: rules, files and packages that cannot be loaded. Foreign code is loaded in a
# separate process, so that it can neither end nor block the caller. The state of running sessions comes from the hub.

PATIENCE_S = 20.0
LOADED = "loaded"


def find_faults(home: Path) -> dict[str, str]:
    """Return the fault of each broken adapter by tool; all others work."""
    found = {point.name: _try_loading(point.name) for point in entry_points(group=GROUP)}
    found |= {name: fault for name in available(home / "dialects") if (fault := _fault_of_rules(name, home))}
    for name, place in _own_files(home / "adapters"):
        found[name] = _try_loading(str(place)) or found.get(name, "")
    return {name: fault for name, fault in sorted(found.items()) if fault}


def _fault_of_rules(name: str, home: Path) -> str:
    try:
        load_dialect(name, home / "dialects")
    except DialectError as error:
        return str(error)
    return ""


def _own_files(folder: Path) -> list[tuple[str, Path]]:
    """A person's own programs: NAME.py, NAME/adapter.py, NAME/prepare.py."""
    if not folder.is_dir():
        return []
    inside = [(path.parent.name, path) for file in ("adapter.py", MODULE) for path in sorted(folder.glob(f"*/{file}"))]
    return [(path.stem, path) for path in sorted(folder.glob("*.py"))] + inside


def _try_loading(name: str) -> str:
    words = own_python("atlasbridge.adapters.listing", name)
    try:
        done = subprocess.run(
            words, env=own_environ(os.environ), stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S
        )
    except subprocess.TimeoutExpired:
        return f"{name} did not load within {PATIENCE_S:.0f} seconds"
    if done.stdout.decode("utf-8", "replace").endswith(f"{LOADED}\n"):
        return ""
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return said[-1] if said else f"{name} ends the program that loads it, with status {done.returncode}"


def load(name: str) -> None:
    """Load the adapter as a session would. Raises AdapterError with the reason."""
    if os.path.basename(name) == MODULE:
        from atlasbridge.adapters.registry import load_module

        if not callable(getattr(load_module(name), "prepare", None)):
            raise AdapterError(f"{name} defines no function called prepare", "see `docs/howto`")
        return
    adapter = AdapterRegistry.find(name)
    if missing := sorted(getattr(adapter, "__abstractmethods__", ())):
        raise AdapterError(f"{adapter.__name__} of {name} lacks {', '.join(missing)}", "see `docs/howto`")


def main(words: list[str]) -> int:
    try:
        load(words[0])
    except AdapterError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{LOADED}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))


def describe_adapters(home: Path) -> list[dict[str, Any]]:
    origins = AdapterRegistry.origins(home)
    with_rules = available(home / "dialects")
    faults = find_faults(home)
    return [
        _describe(name, origins, home, name in with_rules, faults.get(name, ""))
        for name in sorted({*origins, *with_rules})
    ]


def _describe(name: str, origins: dict[str, str], home: Path, has_rules: bool, fault: str) -> dict[str, Any]:
    """A broken adapter is listed with its fault, and does not hide the others."""
    dialect = load_dialect(name, home / "dialects") if has_rules and not fault else None
    commands = (dialect.commands if dialect else ()) or (name,)
    own, updated = (home / folder / f"{name}.toml" for folder in ("dialects", UPDATES))
    place = next((place for place in map(shutil.which, commands) if place), "") or ""
    return {
        "name": name,
        "commands": list(commands),
        "versions": list(dialect.versions) if dialect else [],
        "installed": place,
        "version": installed_version(place) if place else "",
        "from": next((str(file) for file in (own, updated) if file.is_file()), "") or origins[name],
        "rules": [rule.id for rule in dialect.rules] if dialect else [],
        "health": fault or "ok",
        "menus": [menu.id for menu in dialect.menus] if dialect else [],
    }
