"""Writes src/atlasbridge/core/screen/width_table.py from the Unicode tables of the `wcwidth` package.

`python tools/gen_widths.py`.  A test compares the file with what this prints, so that neither drifts from the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from wcwidth.table_mc import CATEGORY_MC
from wcwidth.table_wide import WIDE_EASTASIAN
from wcwidth.table_zero import ZERO_WIDTH

TABLE = Path(__file__).resolve().parent.parent / "src" / "atlasbridge" / "core" / "screen" / "width_table.py"

# What terminals draw in a column of its own although it may be counted as none: spacing marks of Indic scripts, the
# soft hyphen, line and paragraph separators, fillers.  The letters of a flag take one column each.
KEPT = {0xAD: 1, 0x2028: 1, 0x2029: 1, 0x3164: 2, 0xFFA0: 1, **dict.fromkeys(range(0x1F1E6, 0x1F200), 1)}
PER_LINE = 14


def _points(table: Mapping[str, tuple[tuple[int, int], ...]], version: str) -> set[int]:
    return {code for first, last in table[version] for code in range(first, last + 1)}


def columns(version: str) -> list[int]:
    wide = _points(WIDE_EASTASIAN, version)
    none = _points(ZERO_WIDTH, version) - _points(CATEGORY_MC, version)
    return [KEPT.get(code, 0 if code in none else 2 if code in wide else 1) for code in range(0x110000)]


def render() -> str:
    version = max(ZERO_WIDTH, key=lambda name: tuple(map(int, name.split("."))))
    widths = columns(version)
    widths[0xD800:0xE000] = [widths[0xD7FF]] * 0x800  # surrogates are no characters
    edges = [0x20] + [code for code in range(0x21, 0x110000) if widths[code] != widths[code - 1]]
    spelled = [f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}" for code in edges]
    rows = ["".join(spelled[at : at + PER_LINE]) for at in range(0, len(spelled), PER_LINE)]
    digits = "".join(str(widths[code]) for code in edges)
    counts = [digits[at : at + 100] for at in range(0, len(digits), 100)]
    lines = [
        f'"""Columns of every character of Unicode {version}: written by tools/gen_widths.py, not by hand.',
        "",
        "Two strings of equal length: a character that begins a run of equals, and how many columns they take.",
        '"""',
        "",
        "BEGINS = (",
        *(f'    "{row}"' for row in rows),
        ")",
        "COLUMNS = (",
        *(f'    "{count}"' for count in counts),
        ")",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TABLE.write_text(render(), "utf-8")
