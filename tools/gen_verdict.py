"""Writes the table of verdicts into docs/detection.md: `python tools/gen_verdict.py`.  A test compares them."""

from __future__ import annotations

from pathlib import Path

from atlasbridge.lab.accuracy import put_into

PAGE = Path(__file__).resolve().parent.parent / "docs" / "detection.md"

if __name__ == "__main__":
    PAGE.write_text(put_into(PAGE.read_text("utf-8")), "utf-8")
