"""The part of `atlasbridge lab canary` that walks tools in windows of several sizes, and its page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from atlasbridge.cli.printing import print_line
from atlasbridge.core.clock import SystemClock, iso

if TYPE_CHECKING:
    from atlasbridge.lab.canary import Result

KINDS = ("answered", "refused", "silent")
Row = dict[str, Any]
HEAD = """# The AI CLIs in windows of every size

Written by `atlasbridge lab canary --sizes --page docs/sizes.md`: the real tools on a mock model in small, usual and
large windows.  Each is asked for a command (allowed, refused, and both while the window changes under the dialog), a
here-document, a file and an edit of 60 lines, a question where it has one, and must be silent while it thinks and
quotes a menu.  "Recognised": every dialog was raised with its choices.  "Answered" and "refused" are counted only if
the file system agrees: what was allowed is there, what was refused is not.  What does not fit on the screen is either
told by the tool itself beside its screen, or marked as incomplete; a prompt that is called whole and lacks one of
60 lines is a failure.
"""


def walk_tools(tools: tuple[str, ...], only: str, as_json: bool, results: Path | None) -> list[Row]:
    """Everything that is known of these tools: what `results` holds from before, and what is walked now."""
    from atlasbridge.lab.canary import version_of
    from atlasbridge.lab.sizes import SIZES, walk_sizes

    rows = _before(results)
    run = iso(SystemClock().wall())
    sizes = tuple(size for size in SIZES if only in f"{size[0]}x{size[1]}")
    for tool in tools:
        version = version_of(tool)
        for result in walk_sizes(tool, sizes):
            row = {**result.to_json(), "version": version, "run": run}
            rows.append(row)
            if results is not None:
                with results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
            _show(result, row, as_json)
    return rows


def _before(results: Path | None) -> list[Row]:
    if results is None or not results.exists():
        return []
    return [json.loads(line) for line in results.read_text("utf-8").splitlines()]


def _show(result: Result, row: Row, as_json: bool) -> None:
    if as_json:
        print_line(row)
        return
    click.echo(
        f"{'ok    ' if result.ok else 'FAILED'} {result.tool} {result.size}  {result.dialog}  ({result.seconds} s)"
    )
    if not result.ok:
        click.echo("       " + result.detail.replace("\n", "\n       "))


def render_sizes(rows: list[Row]) -> str:
    """A row per tool and size, and a line per failure.  Of several walks of the same dialog the newest counts."""
    newest = _newest(rows)
    groups: dict[tuple[str, str], list[Row]] = {}
    for (tool, size, _), row in newest.items():
        groups.setdefault((tool, size), []).append(row)
    parts = [
        HEAD + _assembled(rows),
        "| tool | version | size | recognised | answered | refused | silent |",
        "|---|---|---|---|---|---|---|",
    ]
    for (tool, size), group in sorted(groups.items(), key=lambda item: (item[0][0], int(item[0][1].partition("x")[0]))):
        asked = [row for row in group if row["kind"] != "silent"]
        cells = [
            _share(asked, "raised"),
            *(_share([row for row in group if row["kind"] == kind], "ok") for kind in KINDS),
        ]
        parts.append(f"| {tool} | {group[0]['version']} | {size} | {' | '.join(cells)} |")
    failed = [row for row in newest.values() if not row["ok"]]
    parts += ["", "## Failures", ""]
    parts += [f"- {row['tool']} {row['size']}, {row['dialog']}: {_first_line(row['detail'])}" for row in failed]
    missing = _not_walked(groups)
    parts += [] if failed else ["None."]
    parts += ["", "## Not walked", "", *(missing or ["Nothing."])]
    return "\n".join(parts) + "\n"


def _newest(rows: list[Row]) -> dict[tuple[str, str, str], Row]:
    """That a tool did not start is forgotten once it did."""
    found: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        found.pop((row["tool"], row["size"], "start"), None)
        found[row["tool"], row["size"], row["dialog"]] = row
    return found


def _assembled(rows: list[Row]) -> str:
    """A page of several runs says so: the tools did not meet the same machine, nor always the same AtlasBridge."""
    runs = {row.get("run", "") for row in rows}
    if len(runs) < 2:
        return ""
    number = "several" if "" in runs else len(runs)
    return f"\nPut together from {number} runs; of several walks of the same dialog the newest counts.\n"


def _not_walked(groups: dict[tuple[str, str], list[Row]]) -> list[str]:
    """A line per tool that has sizes left."""
    from atlasbridge.lab.dialogs import WALKS
    from atlasbridge.lab.sizes import SIZES

    sizes = [f"{columns}x{rows}" for columns, rows in SIZES]
    left = {tool: [size for size in sizes if (tool, size) not in groups] for tool in WALKS}
    return [f"- {tool}: {', '.join(missing)}" for tool, missing in left.items() if missing]


def _share(rows: list[Row], field: str) -> str:
    return f"{sum(bool(row[field]) for row in rows)} of {len(rows)}" if rows else "none"


def _first_line(text: str) -> str:
    return text.partition("\n")[0].replace("|", "\\|")
