"""Known holes in what we depend on: by pip-audit where its data can be had, and by our own list everywhere.

Exit status 1 when a lower bound of pyproject.toml, or a package that is installed here, has a known hole.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
HOLES = Path(__file__).with_name("known_holes.toml")
PATIENCE_S = 120
_BOUND = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*(?P<rest>[^;]*)")


def numbers(text: str) -> tuple[int, ...]:
    """Enough of a version to compare releases: 0.49.1 is (0, 49, 1, 0)."""
    found = [int(part) for part in re.findall(r"\d+", text.split("+")[0])[:4]]
    return (*found, *(0 for _ in range(4 - len(found))))


def lower_bounds(project: dict[str, Any]) -> dict[str, list[str]]:
    """Of every requirement, of the package itself, its extras and its groups, by name."""
    groups = [project["project"]["dependencies"], *project["project"]["optional-dependencies"].values()]
    groups += [[one for one in group if isinstance(one, str)] for group in project["dependency-groups"].values()]
    bounds: dict[str, list[str]] = {}
    for requirement in (one for group in groups for one in group):
        found = _BOUND.match(requirement)
        assert found is not None, requirement
        least = re.search(r"[>=]=\s*([0-9.]+)", found["rest"])
        bounds.setdefault(found["name"].lower(), []).append(least.group(1) if least else "0")
    return bounds


def find_holes(bounds: dict[str, list[str]], holes: list[dict[str, str]]) -> list[str]:
    return [
        f"{hole['package']}>={bound} lets in {hole['advisory']}; ask for {hole['fixed']} or later"
        for hole in holes
        for bound in bounds.get(hole["package"], [])
        if numbers(bound) < numbers(hole["fixed"])
    ]


def find_installed(holes: list[dict[str, str]]) -> list[str]:
    wrong = []
    for hole in holes:
        try:
            here = version(hole["package"])
        except PackageNotFoundError:
            continue
        if numbers(here) < numbers(hole["fixed"]):
            wrong.append(f"{hole['package']} {here} is installed and has {hole['advisory']}")
    return wrong


def ask_pip_audit() -> tuple[int, str]:
    """Its verdict on requirements.lock; 0 where it is not here, or its data cannot be had."""
    program = shutil.which("pip-audit", path=str(Path(sys.executable).parent)) or shutil.which("pip-audit")
    if program is None:
        return 0, "pip-audit is not installed; checked by tools/known_holes.toml alone"
    words = [program, "--requirement", str(ROOT / "requirements.lock"), "--disable-pip", "--progress-spinner", "off"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return 0, "pip-audit's data cannot be had here; checked by tools/known_holes.toml alone"
    if done.returncode and not re.search(r"^Found \d+ known vulnerabilit", done.stderr, re.MULTILINE):
        return 0, "pip-audit's data cannot be had here; checked by tools/known_holes.toml alone"
    return done.returncode, done.stdout + done.stderr


def main() -> int:
    holes = tomllib.loads(HOLES.read_text("utf-8"))["hole"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wrong = [*find_holes(lower_bounds(project), holes), *find_installed(holes)]
    code, said = ask_pip_audit()
    sys.stdout.write("\n".join([*wrong, said.strip()]) + "\n")
    return 1 if wrong or code else 0


if __name__ == "__main__":
    sys.exit(main())
