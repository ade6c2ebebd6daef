"""`atlasbridge lab canary`: are the dialogs of the installed AI CLIs still recognised and answered?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from atlasbridge.cli.printing import json_option, print_line

if TYPE_CHECKING:
    from atlasbridge.lab.canary import Result

HEAD = """# The AI CLIs, dialog by dialog

Written by `atlasbridge lab canary --page docs/tools.md TOOL...`: every line is a dialog of the real tool, brought
about by a mock model, recognised by AtlasBridge under `atlasbridge run`, and answered through `atlasbridge reply`.
`y` is the dialog's own allow-once choice, `n` refuses; "silent" means that nothing is asked.
"""


@click.command("canary")
@click.argument("tools", nargs=-1, required=True)
@click.option("--only", default="", help="Only the walks whose name contains this.")
@click.option("--page", type=click.Path(dir_okay=False, path_type=Path), help="Write the results as a page.")
@json_option
def command(tools: tuple[str, ...], only: str, page: Path | None, as_json: bool) -> int:
    """Walk real tools (claude, codex, gemini, opencode, aider) through their dialogs, offline.

    Exit status 1 when a dialog is no longer recognised or answered.
    """
    from atlasbridge.lab.canary import canary, version_of
    from atlasbridge.lab.dialogs import WALKS

    unknown = [tool for tool in tools if tool not in WALKS]
    if unknown:
        raise click.UsageError(f"no dialogs are known of {', '.join(unknown)}; known: {', '.join(WALKS)}")
    found: dict[str, tuple[str, list[Result]]] = {}
    for tool in tools:
        version = version_of(tool)
        results: list[Result] = []
        found[tool] = version, results
        for result in canary(tool, only):
            results.append(result)
            _show(result, version, as_json)
    if page is not None:
        page.write_text(render_page(found), "utf-8")
    return int(not all(result.ok for _, results in found.values() for result in results))


def _show(result: Result, version: str, as_json: bool) -> None:
    if as_json:
        print_line({**result.to_json(), "version": version})
        return
    mark = "ok    " if result.ok else "FAILED"
    click.echo(f"{mark} {result.tool} {version}  {result.dialog}  ({result.seconds} s)")
    if not result.ok:
        click.echo("       " + result.detail.replace("\n", "\n       "))


def render_page(found: dict[str, tuple[str, list[Result]]]) -> str:
    parts = [HEAD, "| tool | version | dialogs | recognised and answered |", "|---|---|---|---|"]
    for tool, (version, results) in found.items():
        good = sum(result.ok for result in results)
        parts.append(f"| {tool} | {version} | {len(results)} | {good} |")
    for tool, (version, results) in found.items():
        parts += ["", f"## {tool} {version}", "", "| dialog | result |", "|---|---|", *_rows(results)]
    return "\n".join(parts) + "\n"


def _rows(results: Iterable[Result]) -> list[str]:
    return [f"| {item.dialog} | {'ok' if item.ok else 'failed: ' + _first_line(item.detail)} |" for item in results]


def _first_line(text: str) -> str:
    return text.partition("\n")[0].replace("|", "\\|")
