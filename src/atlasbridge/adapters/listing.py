"""What `atlasbridge adapters` says of every tool: where its adapter comes from, its rules, the versions walked."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from atlasbridge.adapters.dialect_files import available, load_dialect
from atlasbridge.adapters.health import find_faults
from atlasbridge.adapters.registry import AdapterRegistry


def describe_adapters(home: Path) -> list[dict[str, Any]]:
    origins = AdapterRegistry.origins(home)
    with_rules = available(home / "dialects")
    faults = find_faults(home)
    return [
        _describe(name, origins, home, name in with_rules, faults.get(name, ""))
        for name in sorted({*origins, *with_rules})
    ]


def _describe(name: str, origins: dict[str, str], home: Path, has_rules: bool, fault: str) -> dict[str, Any]:
    """One that is broken is listed with its fault, and hides none of the others."""
    dialect = load_dialect(name, home / "dialects") if has_rules and not fault else None
    commands = (dialect.commands if dialect else ()) or (name,)
    own = home / "dialects" / f"{name}.toml"
    return {
        "name": name,
        "commands": list(commands),
        "versions": list(dialect.versions) if dialect else [],
        "installed": next((place for place in map(shutil.which, commands) if place), "") or "",
        "from": str(own) if own.is_file() else origins[name],
        "rules": [rule.id for rule in dialect.rules] if dialect else [],
        "health": fault or "ok",
        "menus": [menu.id for menu in dialect.menus] if dialect else [],
    }
