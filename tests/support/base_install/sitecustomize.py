"""On PYTHONPATH: only what `pip install .` brings can be imported, none of what an extra adds."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

EXTRAS = {
    *("cryptography", "wsproto", "psycopg", "psycopg_pool", "prometheus_client", "uvloop", "webauthn", "cbor2"),
    *("slack_sdk", "aiohttp", "apprise", "http_ece", "py_vapid", "PIL", "mcp"),
}


class NotInstalled(MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


if __name__ == "sitecustomize":  # imported by the interpreter at its start, not by a test
    sys.meta_path.insert(0, NotInstalled())
