"""What `atlasbridge adapters` says of every tool: where its adapter comes from, its rules, the versions walked."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from atlasbridge.adapters.dialect_files import available, load_dialect
from atlasbridge.adapters.registry import AdapterRegistry


def describe_adapters(home: Path) -> list[dict[str, Any]]:
    origins = AdapterRegistry.origins(home)
    with_rules = available(home / "dialects")
    return [_describe(name, origins, home, name in with_rules) for name in sorted({*origins, *with_rules})]


def _describe(name: str, origins: dict[str, str], home: Path, has_rules: bool) -> dict[str, Any]:
    dialect = load_dialect(name, home / "dialects") if has_rules else None
    commands = (dialect.commands if dialect else ()) or (name,)
    own = home / "dialects" / f"{name}.toml"
    return {
        "name": name,
        "commands": list(commands),
        "versions": list(dialect.versions) if dialect else [],
        "installed": next((place for place in map(shutil.which, commands) if place), "") or "",
        "from": str(own) if own.is_file() else origins[name],
        "rules": [rule.id for rule in dialect.rules] if dialect else [],
        "menus": [menu.id for menu in dialect.menus] if dialect else [],
    }
