"""`python -m tests.real_tools TOOL`: are the dialogs of the installed AI CLIs still recognised and answered?"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable
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

Written by `python -m tests.real_tools --sizes --page docs/sizes.md`: the real tools on a mock model in small, usual and
large windows.  Each is asked for a command (allowed, refused, and both while the window changes under the dialog), a
here-document, a file and an edit of 60 lines, a question where it has one, and must be silent while it thinks and
quotes a menu.  "Recognised": every dialog was raised with its choices.  "Answered" and "refused" are counted only if
the file system agrees: what was allowed is there, what was refused is not.  What does not fit on the screen is either
told by the tool itself beside its screen, or marked as incomplete; a prompt that is called whole and lacks one of
60 lines is a failure.
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
BEFORE = "\n## What the tools say beside their screen"
_SECTION = re.compile(rf"\n{re.escape(TITLE)}\n.*?(?=\n## )", re.DOTALL)
LAB_TRUTH_HEAD = f"""
{TITLE}

Measured by `python -m tests.real_tools --truth TOOL...`: the mock model asks for commands and edits that are hard to
show, each is allowed through `atlasbridge reply`, and what a channel was shown is compared with what the shell was
given or what the file then held.  "Whole": a complete subject, equal to the last character.  "Rows": every character
in its order, as the tool drew it; which line breaks are the tool's nobody can tell, and no rule may look at it.  "Said
to be cut": a part was not drawn, and every channel says so.  "Invisible": the tool drew nothing, or blanks, for
characters that it then ran; what is shown is what it drew, and no rule may look at it.  "Not asked": the tool needed
nobody, or turned the request down by itself; "not run": it did so after it was allowed.  """


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

Written by `python -m tests.real_tools --page docs/tools.md TOOL...`: every line is a dialog of the real tool, brought
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

The hooks of Codex and Qwen Code only tell: neither draws its dialog before its hooks have ended, so a person at the
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
  administrator may write to, and else warns about; it can see a dialog, never answer it.  Instead, a session without a
  terminal gets 240 rows, in which Gemini shows commands of up to 200 lines whole.  In the window of a terminal it
  hides the lines that do not fit: the card says how many, except in a window of about 15 rows, where Gemini's own
  count is out of sight, too: there it says that a taller window, or detaching the session, can show more.
- OpenCode's HTTP server (`--port`) tells what its plugin tells, but to every program here, and without a password.

## Limits

- Claude Code with `--ax-screen-reader`: of a question that takes several answers, one can be given remotely.
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
  when it starts, `atlasbridge adapters show TOOL` at any time, and `python -m tests.real_tools TOOL` tries it out.
"""


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
            page.write_text(render_sizes(rows), "utf-8")
        return int(not all(row["ok"] for row in rows))
    wanted = parse_size(size)
    before = page.read_text("utf-8") if page is not None and page.exists() else ""
    if truth:
        measured = measure_tools(tools, only, as_json, wanted)
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
            _show_lab_canary(result, version, as_json)
    if draft is not None:
        draft.write_text(_draft(tools[0], *found[tools[0]]), "utf-8")
    if page is not None:
        page.write_text(with_truth(render_page(found), truth_section(before)), "utf-8")
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


def render_page(found: dict[str, tuple[str, list[Result]]]) -> str:
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
    for tool, (version, results) in found.items():
        parts += ["", f"## {tool} {version}", "", "| dialog | result |", "|---|---|", *_rows(results)]
    return "\n".join(parts) + "\n" + BESIDE


def _rows(results: Iterable[Result]) -> list[str]:
    return [f"| {item.dialog} | {_verdict(item)} |" for item in results]


def _verdict(item: Result) -> str:
    if not item.ok:
        return "failed: " + _first_line(item.detail)
    return "ok, asked twice: " + _first_line(item.again[0]) if item.again else "ok"


if __name__ == "__main__":
    sys.exit(command(standalone_mode=False))
