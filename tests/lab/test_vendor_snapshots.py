"""`tools/vendor_snapshots.py` reads a vendor's own pictures and names the dialogs that would not be raised."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

INSTA = """---
source: tui/src/some.rs
expression: terminal.backend()
---
  Would you like to run the following command?

  $ touch x

{list}
  Press enter to confirm or esc to cancel
"""
VITEST = """// Vitest Snapshot v1

exports[`Dialog > confirm asks 1`] = `
"{question}

● 1. Yes
  2. No

Enter to select"
`;

exports[`confirm written 1`] = `
[
  "<cursor.hide>",
  "│
◆  Really?
│  ● Yes / ○ No
└
",
]
`;
"""


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    path = Path(__file__).parents[2] / "tools" / "vendor_snapshots.py"
    spec = importlib.util.spec_from_file_location("vendor_snapshots", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["vendor_snapshots"] = module
    spec.loader.exec_module(module)
    return module


def test_dialogs_of_insta_that_are_raised_leave_nothing_to_report(
    tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = INSTA.format(list="› 1. Yes, proceed (y)\n  2. No, and tell Codex what to do differently (esc)\n")
    (tmp_path / "tui__approval_modal_exec.snap").write_text(shown, "utf-8")
    assert tool.main(["codex", str(tmp_path)]) == 0
    assert "1 pictures, 1 dialogs by name, 1 raised at once." in capsys.readouterr().out


def test_a_dialog_that_would_not_be_raised_is_named(
    tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tui__approval_of_next_year.snap").write_text(INSTA.format(list="  [[yes]] ((no))\n"), "utf-8")
    assert tool.main(["codex", str(tmp_path)]) == 1
    assert "approval_of_next_year" in capsys.readouterr().out


def test_pictures_of_vitest_and_what_a_program_wrote_are_read(
    tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Dialog.test.tsx.snap").write_text(VITEST.format(question="Apply this change?"), "utf-8")
    assert tool.main(["generic", str(tmp_path), "--all"]) == 0
    said = capsys.readouterr().out
    assert "['Yes', 'No'] 'Apply this change?'" in said and "raised yes_no: Dialog confirm written 1" in said
