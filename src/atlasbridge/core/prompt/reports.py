"""What a terminal says by itself among the keys of its person: where the cursor is, what it can, mouse and focus."""

from __future__ import annotations

import re

_REPORTS = re.compile(
    rb"\x1b\[\??[\d;:]*(?:\$y|[cRnutIO])|\x1b\[<[\d;]*[mM]|\x1b\[M...|\x1b[\]P_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[>[\d;]*c",
    re.DOTALL,
)


def part_reports(data: bytes) -> tuple[bytes, bytes]:
    """The keys, and the reports among them."""
    if b"\x1b" not in data:
        return data, b""
    return _REPORTS.sub(b"", data), b"".join(_REPORTS.findall(data))
