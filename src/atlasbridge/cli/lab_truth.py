"""The part of `atlasbridge lab canary` that says whether what was shown is what then ran, and its section of a page."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import click

from atlasbridge.cli.printing import print_line

if TYPE_CHECKING:
    from atlasbridge.lab.truth import Truth

Measured = dict[str, tuple[str, list["Truth"]]]
TITLE = "## Shown, and then run"
BEFORE = "\n## What the tools say beside their screen"
_SECTION = re.compile(rf"\n{re.escape(TITLE)}\n.*?(?=\n## )", re.DOTALL)
HEAD = f"""
{TITLE}

Measured by `atlasbridge lab canary --truth TOOL...`: the mock model asks for commands and edits that are hard to show,
each is allowed through `atlasbridge reply`, and what a channel was shown is compared with what the shell was given or
what the file then held.  "Whole": a complete subject, equal to the last character.  "Rows": every character in its
order, as the tool drew it; which line breaks are the tool's nobody can tell, and no rule may look at it.  "Said to be
cut": a part was not drawn, and every channel says so.  "Invisible": the tool drew nothing, or blanks, for characters
that it then ran; what is shown is what it drew, and no rule may look at it.  "Not asked": the tool needed nobody, or
turned the request down by itself; "not run": it did so after it was allowed.
"""


def measure_tools(tools: tuple[str, ...], only: str, as_json: bool) -> Measured:
    from atlasbridge.lab.canary import version_of
    from atlasbridge.lab.truth import measure

    found: Measured = {}
    for tool in tools:
        version = version_of(tool)
        results: list[Truth] = []
        found[tool] = version, results
        for result in measure(tool, only):
            results.append(result)
            _show(result, version, as_json)
    return found


def _show(result: Truth, version: str, as_json: bool) -> None:
    if as_json:
        print_line({**result.to_json(), "version": version})
        return
    click.echo(f"{result.verdict.value:20} {result.tool} {version}  {result.name}")
    if not result.ok:
        click.echo("       " + result.detail.replace("\n", "\n       "))


def render_truth(measured: Measured) -> str:
    from atlasbridge.lab.truth import Verdict

    names = [verdict.value for verdict in Verdict]
    parts = [HEAD, f"| tool | version | {' | '.join(names)} |", "|---|---|" + "---|" * len(names)]
    for tool, (version, results) in measured.items():
        count = Counter(result.verdict for result in results)
        parts.append(f"| {tool} | {version} | {' | '.join(str(count[verdict]) for verdict in Verdict)} |")
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
