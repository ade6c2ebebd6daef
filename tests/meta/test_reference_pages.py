"""An undocumented command, setting or audit event fails the build; so does a setting that nobody reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.gen_docs import PAGES, REFERENCE, explain_event
from tools.gen_map import PICTURE, render_map

from atlasbridge.channels.registry import BUILT_IN
from atlasbridge.cli.catalogue import CALLED_ELSEWHERE, COMMANDS, render_help
from atlasbridge.cli.main import cli, root_context
from atlasbridge.config.load import setting_paths
from atlasbridge.config.model import AtlasBridgeConfig
from atlasbridge.core.audit.events import AuditEvent

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "atlasbridge"


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_current(name: str) -> None:
    assert (REFERENCE / name).read_text(encoding="utf-8") == PAGES[name](), "run: make reference"


@pytest.mark.lint
def test_the_picture_of_the_floors_is_current() -> None:
    """Its boxes and arrows; how many lines a room has may be that of some days ago."""
    drawn, now = (re.sub(r"[\d,]+ lines", "", text) for text in (PICTURE.read_text(encoding="utf-8"), render_map()))
    assert drawn == now, "run: make reference"


def test_every_page_is_in_the_menu_of_the_site() -> None:
    menu = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if page not in re.findall(r"[\w/.-]+\.md", menu)} == set()


def test_every_command_exists_and_explains_itself() -> None:
    context = root_context()
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None and command.help, name
        assert name in render_help()


def test_every_command_that_prints_a_table_has_json() -> None:
    for path in (SRC / "cli").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "print_table(" in text and path.stem != "printing":
            assert "as_json" in text, path.name


def test_every_setting_is_explained() -> None:
    for cells in _rows("configuration.md"):
        assert cells[3], f"{cells[0]} has no explanation"


def test_every_audit_event_is_explained() -> None:
    for event in AuditEvent:
        assert explain_event(event), event


def test_every_event_that_is_written_has_a_name_in_the_list() -> None:
    for path in SRC.rglob("*.py"):
        for name in re.findall(r'(?:hub|ledger)\.note\(\s*"([A-Z_]+)"', path.read_text(encoding="utf-8")):
            assert name in AuditEvent.__members__, f"{path.relative_to(SRC)} writes {name}"


def test_every_setting_is_read_by_somebody() -> None:
    readers = "".join(
        (SRC / name).read_text(encoding="utf-8")
        for name in ("bootstrap.py", "config/hub.py", "config/hub.py", "config/session.py", "config/hub.py")
    )
    for path in setting_paths(AtlasBridgeConfig):
        assert re.search(rf"\b{path[-1]}\b", readers), f"{'.'.join(path)} is a dead letter"


def test_every_built_in_channel_has_its_table_on_the_page() -> None:
    page = (REFERENCE / "configuration.md").read_text(encoding="utf-8")
    for name in BUILT_IN:
        assert name == "local" or f"## [channels.{name}]" in page


def _rows(page: str) -> list[list[str]]:
    lines = (REFERENCE / page).read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| `")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in rows]


def test_what_is_called_otherwise_elsewhere_leads_to_a_command_of_ours() -> None:
    assert set(CALLED_ELSEWHERE.values()) <= set(COMMANDS)
    assert not set(CALLED_ELSEWHERE) & set(COMMANDS)
