"""What we build on: no lower bound with a known hole, every action by its digest, and a lock with hashes."""

from __future__ import annotations

import re
import tomllib

from tools.audit_dependencies import HOLES, ROOT, find_holes, lower_bounds, numbers

HOLES_KNOWN = tomllib.loads(HOLES.read_text("utf-8"))["hole"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_no_lower_bound_has_a_known_hole() -> None:
    assert find_holes(lower_bounds(PROJECT), HOLES_KNOWN) == []


def test_the_check_finds_a_bound_that_is_too_low() -> None:
    assert find_holes({"starlette": ["0.49.0"]}, HOLES_KNOWN) and not find_holes({"starlette": ["0.49.1"]}, HOLES_KNOWN)
    assert numbers("0.9") < numbers("0.49.1")


def test_every_known_hole_is_of_something_that_we_use() -> None:
    assert {hole["package"] for hole in HOLES_KNOWN} <= lower_bounds(PROJECT).keys()


def test_every_action_is_pinned_by_its_digest() -> None:
    uses = [
        line.split("uses:")[1].strip()
        for path in (ROOT / ".github" / "workflows").glob("*.yml")
        for line in path.read_text("utf-8").splitlines()
        if "uses:" in line
    ]
    assert len(uses) > 10
    assert [one for one in uses if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v[\d.]+", one)] == []


def test_the_lock_has_hashes_for_everything_that_the_package_needs() -> None:
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    entries = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", lock, re.MULTILINE)
    locked = {name.lower().replace("_", "-"): version for name, version in entries}
    assert lock.count("--hash=sha256:") > len(locked)
    for block in re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE)[1:]:
        assert "--hash=sha256:" in block, block.splitlines()[0]
    for name, bounds in lower_bounds({**PROJECT, "dependency-groups": {}}).items():
        if name in ("pywinpty", PROJECT["project"]["name"]):  # of Windows alone, and an extra by its older name
            continue
        assert all(numbers(locked[name]) >= numbers(bound) for bound in bounds), name
