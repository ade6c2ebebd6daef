"""Prints what an installed AtlasBridge is made of, as CycloneDX 1.5: `python tools/sbom.py > sbom.json`.

It reads the environment that it runs in: the program, and what it requires there, each with version and licence.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any


def closure(root: str) -> list[Distribution]:
    """The distribution and all that it requires here, by name; extras that are not installed are no part of it."""
    found: dict[str, Distribution] = {}
    waiting = [root]
    while waiting:
        name = _normal(waiting.pop())
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            if name == _normal(root):
                raise
            continue
        for line in found[name].requires or ():
            if "extra ==" not in line:
                waiting.append(re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0])
    return [found[name] for name in sorted(found)]


def render(root: str = "atlasbridge-pty") -> dict[str, Any]:
    parts = closure(root)
    own = next(part for part in parts if _normal(part.name) == _normal(root))
    others = [_component(part, "library") for part in parts if part is not own]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": _component(own, "application")},
        "components": others,
    }


def _component(part: Distribution, kind: str) -> dict[str, Any]:
    reference = f"pkg:pypi/{_normal(part.name)}@{part.version}"
    out: dict[str, Any] = {
        "type": kind,
        "name": part.name,
        "version": part.version,
        "purl": reference,
        "bom-ref": reference,
    }
    licence = _said(part, "License-Expression") or _said(part, "License")
    if licence and len(licence) < 80:
        out["licenses"] = [{"license": {"name": licence}}]
    return out


def _said(part: Distribution, field: str) -> str:
    found = part.metadata.get_all(field)
    return str(found[0]) if found else ""


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    json.dump(render(), sys.stdout, indent=1)
    sys.stdout.write("\n")
