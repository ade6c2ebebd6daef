"""`python -m tests.real_tools TOOL`: are the dialogs of the installed AI CLIs still recognised and answered?"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from atlasbridge.cli.printing import json_option, print_line
from atlasbridge.core.clock import SystemClock, iso

if TYPE_CHECKING:
    from tests.real_tools.canary import Result
    from tests.real_tools.truth import Truth


# The part of `python -m tests.real_tools` that walks tools in windows of several sizes, and its page.

KINDS = ("answered", "refused", "silent")
Row = dict[str, Any]
HEAD = """# The AI CLIs in windows of every size

`python -m tests.real_tools --sizes --page docs/sizes.md` runs the real tools on a mock model in small, usual and
large windows and writes the tables of this page. The model asks each tool for a command (allowed, refused, and both
while the window changes its size), a here-document, a file and an edit of 60 lines, and a question if the tool has
one. While the tool thinks and quotes a menu, nothing must be raised.

- *Recognised*: every dialog was raised with its choices.
- *Answered* and *refused*: the file system was checked. Files that were allowed exist, files that were refused do not.
- A dialog that does not fit on the screen must be complete through the tool's hook, or marked as incomplete. A prompt
  that is called complete and lacks one of 60 lines is a failure.
"""


def walk_tools(tools: tuple[str, ...], only: str, as_json: bool, results: Path | None) -> list[Row]:
    """Everything that is known of these tools: what `results` holds from before, and what is walked now."""
    from tests.real_tools.canary import version_of
    from tests.real_tools.sizes import SIZES, walk_sizes

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


def render_sizes(rows: list[Row], before: str = "") -> str:
    """A row per tool and size, and a line per failure. The newest walk of each dialog counts. Sections that a person
    wrote into the page of `before` stay."""
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
    return "\n".join(parts) + "\n" + written_by_hand(before, NOTES)


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
    return f"\nCollected from {number} runs; the newest walk of each dialog counts.\n"


def _not_walked(groups: dict[tuple[str, str], list[Row]]) -> list[str]:
    """A line per tool that has sizes left."""
    from tests.real_tools.dialogs import WALKS
    from tests.real_tools.sizes import SIZES

    sizes = [f"{columns}x{rows}" for columns, rows in SIZES]
    left = {tool: [size for size in sizes if (tool, size) not in groups] for tool in WALKS}
    return [f"- {tool}: {', '.join(missing)}" for tool, missing in left.items() if missing]


def _share(rows: list[Row], field: str) -> str:
    return f"{sum(bool(row[field]) for row in rows)} of {len(rows)}" if rows else "none"


def _first_line(text: str) -> str:
    return text.partition("\n")[0].replace("|", "\\|")


# The part of `python -m tests.real_tools` that says whether what was shown is what then ran, and its section of a page.

Measured = dict[str, tuple[str, list["Truth"]]]
TITLE = "## Shown, and then run"
BEFORE = "\n## Hooks and events of the tools"  # written by a person, from here to the end of docs/tools.md
NOTES = "\n## Notes"  # the same in docs/sizes.md
_SECTION = re.compile(rf"\n{re.escape(TITLE)}\n.*?(?=\n## )", re.DOTALL)
LAB_TRUTH_HEAD = f"""
{TITLE}

Measured by `python -m tests.real_tools --truth TOOL...`: the mock model asks for commands and edits that are hard to
show, each is allowed through `atlasbridge reply`, and the text that a channel showed is compared with what the shell
received or the file then contained.

- *Whole*: a complete subject, equal to the last character.
- *Rows*: every character in its order, as the tool drew it. The screen does not tell which line breaks are the
  tool's, so no rule applies.
- *Said to be cut*: the tool did not draw a part, and every channel says so.
- *Invisible*: the tool drew nothing, or blanks, for characters that it then ran. The card shows what the tool drew,
  and no rule applies.
- *Not asked*: the tool asked no one, or refused the request itself; *not run*: it did so after the request was allowed.
"""


def measure_tools(tools: tuple[str, ...], only: str, as_json: bool, size: tuple[int, int]) -> Measured:
    from tests.real_tools.canary import version_of
    from tests.real_tools.truth import measure

    found: Measured = {}
    for tool in tools:
        version = version_of(tool)
        results: list[Truth] = []
        found[tool] = version, results
        for result in measure(tool, only, size):
            results.append(result)
            _show_lab_truth(result, version, as_json)
    return found


def _show_lab_truth(result: Truth, version: str, as_json: bool) -> None:
    if as_json:
        print_line({**result.to_json(), "version": version})
        return
    click.echo(f"{result.verdict.value:20} {result.tool} {version}  {result.name}")
    if not result.ok:
        click.echo("       " + result.detail.replace("\n", "\n       "))


def render_truth(measured: Measured) -> str:
    from tests.real_tools.truth import Agreement

    names = [verdict.value for verdict in Agreement]
    parts = [LAB_TRUTH_HEAD, f"| tool | version | {' | '.join(names)} |", "|---|---|" + "---|" * len(names)]
    for tool, (version, results) in measured.items():
        count = Counter(result.verdict for result in results)
        parts.append(f"| {tool} | {version} | {' | '.join(str(count[verdict]) for verdict in Agreement)} |")
    said = {tool: {result.name: result.verdict.value for result in results} for tool, (_, results) in measured.items()}
    cases = list(dict.fromkeys(name for verdicts in said.values() for name in verdicts))
    parts += ["", f"| asked for | {' | '.join(said)} |", "|---|" + "---|" * len(said)]
    parts += [f"| {name} | {' | '.join(verdicts.get(name, '') for verdicts in said.values())} |" for name in cases]
    return "\n".join(parts) + "\n"


def truth_section(page: str) -> str:
    match = _SECTION.search(page)
    return match[0] if match else ""


def with_truth(page: str, section: str) -> str:
    """The page with this section in the place of the one it had, or before what the tools say beside their screen."""
    if not section:
        return page
    return _SECTION.sub("", page, count=1).replace(BEFORE, section + BEFORE, 1)


LAB_CANARY_HEAD = """# The AI CLIs, dialog by dialog

`python -m tests.real_tools --page docs/tools.md TOOL...` writes the tables of this page. A mock model makes each real
tool show its dialogs under `atlasbridge run`. AtlasBridge must recognise each dialog, and `atlasbridge reply` answers
it.

- `y` is the dialog's own choice to allow once, `n` its refusal; *silent* means that nothing must be raised.
- *Asked twice* counts the dialogs where a reply was refused as stale (the tool was just drawing) and a second one was
  accepted.
"""


def written_by_hand(page: str, heading: str) -> str:
    """The end of a page, from this heading on: no run writes it."""
    return heading + page.partition(heading)[2] if heading in page else ""


@click.command("real_tools")
@click.argument("tools", nargs=-1)
@click.option("-a", "--all", "every", is_flag=True, help="Every tool that is installed.")
@click.option("--sizes", is_flag=True, help="A few dialogs in windows of several sizes, instead.")
@click.option(
    "--results",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --sizes: add each result to this file; the page is written from all that it holds.",
)
@click.option("--only", default="", help="Only the walks, cases or sizes whose name contains this.")
@click.option("--page", type=click.Path(dir_okay=False, path_type=Path), help="Write the results as a page.")
@click.option("--size", default="120x40", show_default=True, help="Columns and rows of the terminal.")
@click.option(
    "--draft",
    type=click.Path(dir_okay=False, path_type=Path),
    help="For one tool: write what its dialect needs for the installed version.",
)
@click.option("--truth", is_flag=True, help="Compare what is shown with what then runs, instead.")
@json_option
def command(
    tools: tuple[str, ...],
    every: bool,
    sizes: bool,
    results: Path | None,
    only: str,
    page: Path | None,
    size: str,
    draft: Path | None,
    truth: bool,
    as_json: bool,
) -> int:
    """Walk real tools (claude, codex, gemini, opencode, aider, qwen, ...) through their dialogs, offline.

    They are looked for in $ATLASBRIDGE_TOOLS and on the PATH; the mock model that they talk to is `mockmodel`.

    Exit status 1 when a dialog is no longer recognised or answered; with --truth, when something else ran than was
    shown.
    """
    from tests.real_tools.canary import canary, version_of
    from tests.real_tools.dialogs import WALKS
    from tests.real_tools.realtool import find_tool

    tools = tools or tuple(tool for tool in WALKS if every and find_tool(tool) is not None)
    if not tools:
        raise click.UsageError("name a tool, or say --all for those that are installed")
    unknown = [tool for tool in tools if tool not in WALKS]
    if unknown:
        raise click.UsageError(f"no dialogs are known of {', '.join(unknown)}; known: {', '.join(WALKS)}")
    if sizes:
        rows = walk_tools(tools, only, as_json, results)
        if page is not None:
            before = page.read_text("utf-8") if page.exists() else ""
            page.write_text(render_sizes(rows, before), "utf-8")
        return int(not all(row["ok"] for row in rows))
    wanted = parse_size(size)
    before = page.read_text("utf-8") if page is not None and page.exists() else ""
    if truth:
        measured = measure_tools(tools, only, as_json, wanted)
        if page is not None:
            page.write_text(with_truth(before or render_page({}, ""), render_truth(measured)), "utf-8")
        return int(not all(result.ok for _, results in measured.values() for result in results))
    found: dict[str, tuple[str, list[Result]]] = {}
    for tool in tools:
        version = version_of(tool)
        walked: list[Result] = []
        found[tool] = version, walked
        for result in canary(tool, only, wanted):
            walked.append(result)
            _show_lab_canary(result, version, as_json)
    if draft is not None:
        draft.write_text(_draft(tools[0], *found[tools[0]]), "utf-8")
    if page is not None:
        page.write_text(with_truth(render_page(found, before), truth_section(before)), "utf-8")
    return int(not all(result.ok for _, results in found.values() for result in results))


def _draft(tool: str, version: str, results: list[Result]) -> str:
    from tests.real_tools.canary import draft_for

    return draft_for(tool, version, results)


def parse_size(text: str) -> tuple[int, int]:
    columns, _, rows = text.partition("x")
    if not (columns.isdecimal() and rows.isdecimal() and int(columns) >= 20 and int(rows) >= 8):
        raise click.UsageError(f"{text!r} is no size; write columns and rows, such as 80x24")
    return int(columns), int(rows)


def _show_lab_canary(result: Result, version: str, as_json: bool) -> None:
    if as_json:
        print_line({**result.to_json(), "version": version})
        return
    mark = "ok    " if result.ok else "FAILED"
    click.echo(f"{mark} {result.tool} {version}  {result.dialog}  ({result.seconds} s)")
    for why in result.again:
        click.echo(f"       asked twice: {why}")
    if not result.ok:
        click.echo("       " + result.detail.replace("\n", "\n       "))


def render_page(found: dict[str, tuple[str, list[Result]]], before: str = "") -> str:
    parts = [
        LAB_CANARY_HEAD,
        "| tool | version | dialogs | recognised and answered | asked twice | answers by keys | by its hook |",
    ]
    parts.append("|---|---|---|---|---|---|---|")
    for tool, (version, results) in found.items():
        good, twice = sum(result.ok for result in results), sum(bool(result.again) for result in results)
        ways = [way for result in results for way in result.ways]
        counts = (len(results), good, twice, ways.count("keys"), ways.count("hook"))
        parts.append(f"| {tool} | {version} | {' | '.join(map(str, counts))} |")
    parts += ["", "## Dialogs", "", "| tool | dialogs that were recognised and answered at once |", "|---|---|"]
    for tool, (version, results) in found.items():
        names = dict.fromkeys(item.dialog for item in results if item.ok and not item.again)
        parts.append(f"| {tool} {version} | {'; '.join(names)} |")
    faults = [
        f"- {tool} {version}, {item.dialog}: {_fault(item)}"
        for tool, (version, results) in found.items()
        for item in results
        if not item.ok or item.again
    ]
    parts += ["", "The others:", "", *(faults or ["None."])]
    return "\n".join(parts) + "\n" + (written_by_hand(before, BEFORE) or f"{BEFORE}\n")


def _fault(item: Result) -> str:
    return f"asked twice: {_first_line(item.again[0])}" if item.ok else f"failed: {_first_line(item.detail)}"


if __name__ == "__main__":
    sys.exit(command(standalone_mode=False))
