"""Information that needs no hub: the audit log file, the structure of the database, and versions."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from typing import Any

from atlasbridge import __version__
from atlasbridge.core.audit.log import read_lines
from atlasbridge.core.home import Home
from atlasbridge.core.schema import write
from atlasbridge.core.store.database import engine_version, read_schema
from atlasbridge.core.store.verify import verify_home


def verify_audit_offline(home: Home) -> dict[str, Any]:
    """Verify the audit log while no hub runs; nothing is repaired."""
    return dict(write(verify_home(home.root)))


def read_audit_file(home: Home) -> Iterator[dict[str, Any]]:
    """Yield the entries of audit.log without verifying them."""
    for line in read_lines(home.audit):
        try:
            yield dict(json.loads(line))
        except ValueError:
            continue  # an incomplete last line; the next hub repairs it


def versions() -> dict[str, str]:
    """Versions for a bug report."""
    return {
        "atlasbridge": __version__,
        "python": platform.python_version(),
        "sqlite": ".".join(str(number) for number in engine_version()),
        "platform": platform.platform(),
    }


def database_schema(home: Home) -> str:
    return read_schema(home.database) if home.database.exists() else ""
