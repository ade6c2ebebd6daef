"""`atlasbridge lab canary`: are the dialogs of the installed AI CLIs still recognised and answered?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from atlasbridge.cli.lab_sizes import render_sizes, walk_tools
from atlasbridge.cli.lab_truth import measure_tools, render_truth, truth_section, with_truth
from atlasbridge.cli.printing import json_option, print_line

if TYPE_CHECKING:
    from atlasbridge.lab.canary import Result

HEAD = """# The AI CLIs, dialog by dialog

Written by `atlasbridge lab canary --page docs/tools.md TOOL...`: every line is a dialog of the real tool, brought
about by a mock model, recognised by AtlasBridge under `atlasbridge run`, and answered through `atlasbridge reply`.
`y` is the dialog's own allow-once choice, `n` refuses; "silent" means that nothing is asked.  "Asked twice" counts
the dialogs where a reply was refused as stale (the tool was drawing just then) and a later one was taken.
"""

BESIDE = """
## What the tools say beside their screen

The screen decides; what a tool says of itself makes a prompt surer and fuller.  When it is missing, late, doubled or
wrong, the dialog is recognised and answered all the same.  All of it is for one run, nothing is written into your home,
and your own settings, hooks and plugins stay in force.

| tool | used | what it gives |
|---|---|---|
| claude | PermissionRequest hook (`--settings`), OSC 7501, title | all of what is asked; takes the answer |
| codex | PermissionRequest hook (`-c`), OSC 7501, title | the whole command or patch; the folder it would run in |
| gemini | title | that it waits, the moment it does |
| opencode | events, by a plugin in `OPENCODE_CONFIG_CONTENT` | all of what is asked; takes the answer |
| aider | nothing | it says nothing |
| qwen | PermissionRequest hook (a file of defaults for this run) | the whole command, diff or question; the folder |
| vibe | OSC 7501 | that it waits, the moment it does |
| cn, kimi, copilot, grok, cline, gptme, goose, hermes, kilo, openhands | nothing | their screens decide |

Claude Code's hook and OpenCode's plugin wait while their dialog stands there.  An answer that allows once or refuses
goes to them: claimed, compared with the screen, recorded and watched as if it were typed; the event `prompt.injected`
and the audit log say `"way": "hook"`, and `atlasbridge status` counts both ways.  Everything else (for ever, questions,
plans, own words) is typed, and so is the answer where nobody waits: hooks are switched off, it is another version of
Claude Code than 2.1.325, or the hook is gone.  Who answers at the terminal meanwhile wins.

The hooks of Codex and Qwen Code only tell: neither draws its dialog before its hooks have ended, so whoever sits at the
terminal would see nothing to answer; the keys answer.  Codex asks at its start about every hook that it does not know.
Ours is vouched for by the digest that Codex 0.166.0 makes of a hook, in the same argument, so that no other is trusted
with it; another version, a run with hooks of its own in `-c`, or one on a server elsewhere (`--remote`) gets none, and
its screen decides.  With settings in `-c` Codex works by itself and not through its background server, so such a
session is not in the list of `codex agents`.

The reason of a rule that refuses reaches the model: by Claude Code's hook and OpenCode's plugin with the refusal, in
Codex as the next message, typed once its dialog is gone and its input box is empty.

Not used, and why:

- The socket of Codex's daemon belongs to all threads of a home: to hear a question a second client must join the thread
  as one who may answer it.  `notify` never speaks at a dialog.  Without its hook Codex shows the command itself, up to
  the height of the screen, and draws nothing for a tab: `rm -rf build<tab>/home` looks like one path.  So what is read
  from its screen, or Gemini's, is for people; no grant and no rule takes it for certain.  An edit is only named in its
  dialog; a patch whose paths are not those that the dialog names (after a `cd`) is said to be incomplete.
- Gemini's Notification hook: it is read from the person's or the project's settings, which are not ours to write, or
  from the system's files (settings or defaults), which Gemini takes only from folders that nobody but the
  administrator may write to, and else warns about; it can see a dialog, never answer it.  A command longer than the
  dialog has its first lines hidden on the screen, and the excerpt says so.
- OpenCode's HTTP server (`--port`) tells what its plugin tells, but to every program here, and without a password.

## Limits

- Claude Code with `--ax-screen-reader`: of a question that takes several answers, one can be given from afar.
- Not walked: Claude Code's very first start (theme, way to sign in), because without the Internet it says "Unable to
  connect to Anthropic services" and ends, also with the mock's address and a key; what comes behind "Sign in with
  ChatGPT", "Device Code" and "Amazon Bedrock" in Codex and behind "Sign in with Google" and "Vertex AI" in Gemini,
  because these need an account there.  "Device Code" without a connection: the same list again, with the reason.
- Gemini draws a command that is higher than the screen twice: first without its last line.  An answer to the first
  drawing is refused as stale and nothing is typed; the second is a prompt of its own.
- Qwen Code, Continue (`cn`), Kimi Code, Copilot CLI, Mistral Vibe and Grok CLI were walked whole at 80x24, and a few
  dialogs of each in other windows: see [the page of sizes](sizes.md).  The rules hold as far as the dialog stands on
  the screen, and a command that is higher than the screen is shown from where it begins to be visible and marked as
  incomplete.
- Not walked in them: signing in, Qwen Code's trust and Auto mode, MCP tools, fetching a page (Continue fetches without
  asking, Kimi refuses loopback addresses), lists of boxes (Kimi's has rules, Qwen's and Copilot's have none), Qwen's
  and Copilot's plans, Kimi's plan beyond a refusal.
- Continue's question knows no refusal: Esc does nothing there, and `n` is refused with the list of choices.
- Continue shows the first 60 characters of a command, three lines of a new file and 16 of a change, Kimi ten lines of
  either; of a tool of another server Continue says how many arguments it has, and Kimi of another agent's order the
  first line; Kimi's plan stands above its dialog.  All of that is said to be incomplete.
- Not walked in Vibe: its trust dialog (an empty folder has none), its other agents, MCP.  In Grok: signing in, words
  beside a refusal, and the official `@xai-official/grok`, which is another program.
- Cline, gptme and goose show a command or an edit only as far as their dialog has room, or a second time among other
  words, and do not say where it ends.  What is read from their screens is for people: it is marked as incomplete, and
  no grant and no rule takes it for certain.
- Cline: a page is fetched without asking.  After three denials in a row it asks how to go on; `n` stops the run.
- gptme: `a` allows everything from then on; `c`, `?` and every word that it does not know leave the command undone.
  Its question (the tool `choice`) knows no refusal.  Not walked: its editor (`e`), forms.
- goose: walked as `goose session` in the mode `approve`, on arm64 through an emulator because there was no program for
  that kind of machine.  Not walked: `goose configure`, other modes, MCP extensions.
- Not walked in them: signing in, plan modes, a very first start without settings, MCP.
- Hermes asks only for commands that it takes for dangerous (`rm -r`, a script from the network ...): files are written
  and changed without asking.  It hides what it takes for a secret and breaks lines as it likes, so what is read from
  its screen is for people.  Its dialogs end by themselves: a permission as refused, a question with a guess of the
  model's; `approvals.timeout` and `clarify.timeout` in its settings say when.  Its question knows no refusal but
  Ctrl-C, which stops the run: `n` is refused with the list of choices.  Words beside a refusal: it takes none.  Not
  walked: its passwords (`sudo`, keys for skills; they are asked as secrets), its model list, `hermes --tui`, its setup.
- Kilo asks as OpenCode does, and has OpenCode's rules and a few of its own.  There is no program for arm64; 7.7.9 for
  x64 was walked with a runtime and libraries for arm64.  Of 7.8.1 the registry had no program for Linux at all.  What
  refuses opens a field for words there, which is sent empty.  Its dialogs are drawn in steps (what it would fetch comes
  a quarter of a second after the buttons), so they are raised once they have stood for half a second; after "Allow
  always" and its second dialog the first is there again for a moment, and is not asked again unless it stays for a
  second.  Its server's and plugins' ways are not used.
- OpenHands (Python 3.12) was walked at 80x24 as a whole.  What it would do stands in one row above the list, several
  actions are confirmed at once: never taken for whole.  Its dialog stands in the text and not in a place of its own:
  at 40x15 it does not fit, and when a window shrinks while it is open OpenHands leaves it out of sight, with the keys;
  no key of it brings it back, a larger window does.  That the empty box below it has not got the keys is told by the
  last row alone: then it is raised as `unknown` after two seconds, and a person must look.  Not walked: its settings,
  `/confirm`.
- OpenCode and Kilo ask the registry for a package of types before they start plugins, once per folder of settings;
  with our plugin OpenCode waits for that at its first start, and without a connection for minutes.
- Droid: `droid` 0.215.0 and `@factory/cli` 0.225.1 have no program for arm64 in the registry; 0.225.2 for x64 says its
  version in an emulator, and was too slow there to be walked.  The rules for programs in general serve it.
- Copilot asks for an address inside a command before it asks for the command: two prompts.
- A tool without a dialect whose list stands right above an input box is raised as `unknown`: who gets the keys cannot
  be seen, and a wrong guess would press Enter on "Yes".
- A version that is not in the table works by the rules of the table's and the generic ones; `atlasbridge run` says so
  when it starts, `atlasbridge adapters show TOOL` at any time, and `atlasbridge lab canary TOOL` tries it out.
"""


@click.command("canary")
@click.argument("tools", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Every tool that is installed.")
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

    They are looked for in $ATLASBRIDGE_TOOLS and on the PATH; the mock model that they talk to comes with AtlasBridge.

    Exit status 1 when a dialog is no longer recognised or answered; with --truth, when something else ran than was
    shown.
    """
    from atlasbridge.lab.canary import canary, version_of
    from atlasbridge.lab.dialogs import WALKS
    from atlasbridge.lab.realtool import find_tool

    tools = tools or tuple(tool for tool in WALKS if every and find_tool(tool) is not None)
    if not tools:
        raise click.UsageError("name a tool, or say --all for those that are installed")
    unknown = [tool for tool in tools if tool not in WALKS]
    if unknown:
        raise click.UsageError(f"no dialogs are known of {', '.join(unknown)}; known: {', '.join(WALKS)}")
    if sizes:
        rows = walk_tools(tools, only, as_json, results)
        if page is not None:
            page.write_text(render_sizes(rows), "utf-8")
        return int(not all(row["ok"] for row in rows))
    wanted = parse_size(size)
    before = page.read_text("utf-8") if page is not None and page.exists() else ""
    if truth:
        measured = measure_tools(tools, only, as_json)
        if page is not None:
            page.write_text(with_truth(before or render_page({}), render_truth(measured)), "utf-8")
        return int(not all(result.ok for _, results in measured.values() for result in results))
    found: dict[str, tuple[str, list[Result]]] = {}
    for tool in tools:
        version = version_of(tool)
        walked: list[Result] = []
        found[tool] = version, walked
        for result in canary(tool, only, wanted):
            walked.append(result)
            _show(result, version, as_json)
    if draft is not None:
        draft.write_text(_draft(tools[0], *found[tools[0]]), "utf-8")
    if page is not None:
        page.write_text(with_truth(render_page(found), truth_section(before)), "utf-8")
    return int(not all(result.ok for _, results in found.values() for result in results))


def _draft(tool: str, version: str, results: list[Result]) -> str:
    from atlasbridge.lab.draft import draft_for

    return draft_for(tool, version, results)


def parse_size(text: str) -> tuple[int, int]:
    columns, _, rows = text.partition("x")
    if not (columns.isdecimal() and rows.isdecimal() and int(columns) >= 20 and int(rows) >= 8):
        raise click.UsageError(f"{text!r} is no size; write columns and rows, such as 80x24")
    return int(columns), int(rows)


def _show(result: Result, version: str, as_json: bool) -> None:
    if as_json:
        print_line({**result.to_json(), "version": version})
        return
    mark = "ok    " if result.ok else "FAILED"
    click.echo(f"{mark} {result.tool} {version}  {result.dialog}  ({result.seconds} s)")
    for why in result.again:
        click.echo(f"       asked twice: {why}")
    if not result.ok:
        click.echo("       " + result.detail.replace("\n", "\n       "))


def render_page(found: dict[str, tuple[str, list[Result]]]) -> str:
    parts = [
        HEAD,
        "| tool | version | dialogs | recognised and answered | asked twice | answers by keys | by its hook |",
    ]
    parts.append("|---|---|---|---|---|---|---|")
    for tool, (version, results) in found.items():
        good, twice = sum(result.ok for result in results), sum(bool(result.again) for result in results)
        ways = [way for result in results for way in result.ways]
        counts = (len(results), good, twice, ways.count("keys"), ways.count("hook"))
        parts.append(f"| {tool} | {version} | {' | '.join(map(str, counts))} |")
    for tool, (version, results) in found.items():
        parts += ["", f"## {tool} {version}", "", "| dialog | result |", "|---|---|", *_rows(results)]
    return "\n".join(parts) + "\n" + BESIDE


def _rows(results: Iterable[Result]) -> list[str]:
    return [f"| {item.dialog} | {_verdict(item)} |" for item in results]


def _verdict(item: Result) -> str:
    if not item.ok:
        return "failed: " + _first_line(item.detail)
    return "ok, asked twice: " + _first_line(item.again[0]) if item.again else "ok"


def _first_line(text: str) -> str:
    return text.partition("\n")[0].replace("|", "\\|")
