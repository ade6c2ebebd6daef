"""`atlasbridge lab` and `adapters`: what AtlasBridge knows about tools.

The lab runs scenarios, makes recordings, and explains why a prompt was or was not raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from atlasbridge.bootstrap import describe_adapters, revert_dialects, update_dialects
from atlasbridge.cli.by_name import find_session_id, named_session, sessions_of
from atlasbridge.cli.printing import echo, home, hub_client, json_option, print_found, print_json, print_line
from atlasbridge.cli.run import needs_unix
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.session.model import choose

if TYPE_CHECKING:
    from atlasbridge.lab.replay import Recording
    from atlasbridge.lab.scenario import BasePromptLabScenario, DetectorResult, Elsewhere

FAILED = 1
_SOURCES = Path(__file__).parents[3:4]
TYPES = ("yes_no", "confirm_enter", "multiple_choice", "free_text", "unknown")


@click.group("lab")
def command() -> None:
    """Prompt Lab: run scenarios, record and replay real prompts, and explain every decision."""


@command.command("list")
@json_option
def list_scenarios(as_json: bool) -> None:
    """List the registered scenarios."""
    rows = list(_registered())
    if as_json:
        print_json(
            [dict(zip(("qa_id", "name", "platform", "status", "description"), row, strict=True)) for row in rows]
        )
        return
    click.echo("AtlasBridge Prompt Lab — Registered Scenarios\n")
    click.echo(f"{'QA ID':<9}{'Name':<31}{'Platform':<24}Status")
    for qa_id, name, platform, status, _ in rows:
        click.echo(f"{qa_id:<9}{name:<31}{platform:<24}{status}")
    registered = sum(row[3] == "registered" for row in rows)
    click.echo(f"\nThe other {len(rows) - registered} are for the tests of the channels.")
    click.echo(f"{registered} scenarios registered. Run with: atlasbridge lab run --all")


def _registered() -> Iterator[tuple[str, str, str, str, str]]:
    from atlasbridge.lab import scenarios  # noqa: F401 - importing them registers them
    from atlasbridge.lab.scenario import ELSEWHERE, REGISTER

    for qa_id in sorted({*REGISTER, *ELSEWHERE}):
        if qa_id in REGISTER:
            item = REGISTER[qa_id]
            yield qa_id, item.name, ", ".join(item.platform), "registered", item.description
        else:
            other = ELSEWHERE[qa_id]
            yield (
                qa_id,
                other.name,
                ", ".join(other.platform),
                "elsewhere",
                f"{other.description}. Runs in {other.where}" if other.test else other.description,
            )


@command.command("run")
@click.argument("names", nargs=-1)
@click.option("-a", "--all", "everything", is_flag=True, help="Run every registered scenario.")
@click.option("--repeat", default=1, show_default=True, help="Run each this many times.")
@click.option("--blind", is_flag=True, help="As on a system that cannot tell who reads the terminal.")
@json_option
def run_scenarios(names: tuple[str, ...], everything: bool, repeat: int, blind: bool, as_json: bool) -> int:
    """Run scenarios by QA ID or name, or scenario files (.json).  Fails when one fails, and when nothing ran."""
    from atlasbridge.lab import scenarios  # noqa: F401 - importing them registers them
    from atlasbridge.lab.scenario import ELSEWHERE, all_scenarios, find

    if not names and not everything:
        raise click.UsageError("name a scenario (QA-001), a file, or say --all")
    bad = 0
    chosen = [] if not everything else list(all_scenarios())
    for name in names:
        if name.endswith(".json"):
            bad += not _run_file(Path(name), as_json)
        elif name.upper() in ELSEWHERE:
            bad += not _run_elsewhere(ELSEWHERE[name.upper()], as_json)
        elif not find(name):
            raise AtlasBridgeError(f"there is no scenario called {name!r}", "see: atlasbridge lab list")
        else:
            chosen += find(name)
    for scenario in chosen:
        passed = [_run_class(scenario, as_json, blind) for _ in range(repeat)]
        bad += not all(passed)
    return FAILED if bad else 0


def _run_elsewhere(entry: Elsewhere, as_json: bool) -> bool:
    """Run a scenario of the channel tests, from the source tree that contains it."""
    import subprocess
    import sys

    source = next((folder for folder in (Path.cwd(), *_SOURCES) if (folder / entry.test).is_file()), None)
    if source is None:
        need = f"its tests come with the source only: run pytest {entry.test} -k {entry.word} there"
        return _tell(entry.qa_id, entry.name, False, need, as_json)
    words = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", entry.test, "-k", entry.word]
    done = subprocess.run(words, cwd=source, capture_output=True, text=True)
    said = done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or ["pytest said nothing"]
    return _tell(entry.qa_id, entry.name, done.returncode == 0, said[-1], as_json)


def _run_class(scenario: type[BasePromptLabScenario], as_json: bool, blind: bool) -> bool:
    try:
        result = asyncio.run(scenario(blind=blind).perform())
    except AssertionError as failure:
        return _tell(scenario.qa_id, scenario.name, False, str(failure), as_json)
    return _tell(scenario.qa_id, scenario.name, True, _latency(result), as_json)


def _latency(result: DetectorResult) -> str:
    return (
        "raised after " + ", ".join(f"{value * 1000:.0f} ms" for value in result.virtual_s) if result.virtual_s else ""
    )


def _run_file(path: Path, as_json: bool) -> bool:
    from atlasbridge.lab.scenario_file import read_scenario, run_file

    scenario = read_scenario(path)
    try:
        prompt = run_file(scenario)
    except AssertionError as failure:
        return _tell(scenario.scenario_id, str(path), False, str(failure), as_json)
    return _tell(scenario.scenario_id, str(path), True, prompt.excerpt.split("\n")[-1] if prompt else "silent", as_json)


def _tell(scenario_id: str, name: str, passed: bool, detail: str, as_json: bool) -> bool:
    if as_json:
        print_line({"id": scenario_id, "name": name, "passed": passed, "detail": detail})
    else:
        click.echo(f"{'passed' if passed else 'FAILED'}  {scenario_id}  {name}  {detail}")
    return passed


@command.command("record", context_settings={"ignore_unknown_options": True})
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file to write (default: recording.cast).")
@click.option("--verbatim", is_flag=True, help="Keep what looks like a secret in the output, too.")
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED)
def record_program(output: Path | None, verbatim: bool, words: tuple[str, ...]) -> int:
    """Record a program's output and your keys as an asciicast: lab record -- CMD ...

    Keys that the terminal does not echo are kept as dots, and so is what looks like a secret in the output.
    """
    needs_unix("lab record")
    from atlasbridge.lab.record import record

    path = output or Path("recording.cast")
    status = record(list(words), path, verbatim=verbatim)
    echo(f"recorded in {path}; replay it with: atlasbridge lab replay {path}", err=True)
    return status


@command.command("replay")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--tool", default="", help="The dialect (default: by the recording's command).")
@json_option
def replay_file(file: Path, tool: str, as_json: bool) -> None:
    """Run a recording through the detector on a virtual clock, and print what it would raise, and when."""
    from atlasbridge.lab.replay import read_recording, render, replay

    recording = read_recording(file)
    for at, said in replay(recording, _dialect(recording, tool)):
        shown = render(at, said)
        if as_json:
            print_line(shown)
        elif shown["event"] == "prompt.raised":
            labels = ", ".join(choice["label"] for choice in shown["choices"])
            kind = "idle" if shown["constraints"]["idle"] else shown["type"]
            click.echo(f"{at:8.2f} s  raised {kind} ({shown['confidence']}): {shown['excerpt']!r} {labels}".rstrip())
        else:
            click.echo(f"{at:8.2f} s  withdrawn: {shown['reason']}")


def _dialect(recording: Recording, tool: str) -> Any:
    from atlasbridge.bootstrap import find_dialect

    words = recording.command.split()
    return find_dialect(home(), tool, words[0] if words else "generic")


@command.command("explain")
@click.argument("what")
@click.option("--tool", default="", help="The dialect, for a recording.")
def explain(what: str, tool: str) -> None:
    """Explain why something is or is not asked: a recording (.cast), a scenario (.json), a prompt, a session."""
    if what.endswith(".cast"):
        _explain_recording(Path(what), tool)
    elif what.endswith(".json"):
        from atlasbridge.lab.scenario_file import detect, read_scenario

        prompt, why = detect(read_scenario(Path(what)).data)
        click.echo("raised" if prompt else "not raised")
        click.echo("\n".join(f"  {line}" for line in why))
    else:
        _explain_id(what)


def _explain_recording(path: Path, tool: str) -> None:
    from atlasbridge.lab.replay import judgements, read_recording

    recording = read_recording(path)
    for at, lines in judgements(recording, _dialect(recording, tool)):
        click.echo(f"{at:8.2f} s  " + "\n            ".join(lines))


def _explain_id(what: str) -> None:
    """Explain a running session by id or name, otherwise a prompt."""
    with hub_client() as hub:
        running = hub.ask("sessions")["sessions"]
        if not choose(what, map(named_session, running)).found:
            _explain_prompt(_find_prompt(what))
            return
        session_id = find_session_id(what, map(named_session, running))
        screen = hub.ask("screen", session_id=session_id)["screen"]
    (session,) = (item for item in running if item["session_id"] == session_id)
    waits = session.get("open_prompt")
    click.echo(f"{session_id}  {session['tool']}: " + (f"asks {waits}" if waits else "asks nothing"))
    for line in screen.get("why") or ["nothing has been judged yet"]:
        click.echo(f"  {line}")


def _explain_prompt(prompt: dict[str, Any]) -> None:
    click.echo(f"{prompt['prompt_id']}  {prompt['type']} ({prompt['confidence']}), {prompt['state']}")
    click.echo(f"  {prompt['excerpt']!r}")
    for item in prompt["evidence"]:
        click.echo(f"  {item['signal']:<11}{item['score']:.2f}  {item['detail']}")


def _find_prompt(prompt_id: str) -> dict[str, Any]:
    with hub_client() as hub:
        known = [*hub.request("prompts")["prompts"], *hub.request("history", limit=500)["prompts"]]
    for prompt in known:
        if prompt["prompt_id"].startswith(prompt_id):
            return dict(prompt)
    raise AtlasBridgeError(
        f"no prompt and no running session is called {prompt_id!r}",
        "list sessions with: atlasbridge ps, and prompts with: atlasbridge logs",
    )


@command.command("report")
@click.argument("which")
@click.option("--not-a-prompt", is_flag=True, help="WHICH is a prompt that should not have been raised.")
@click.option("--type", "kind", type=click.Choice(TYPES), help="What it should have been.")
@click.option("--missed", is_flag=True, help="WHICH is a session that waits now, and nothing was raised.")
def report(which: str, not_a_prompt: bool, kind: str | None, missed: bool) -> None:
    """Turn a mistake into a failing scenario: a PROMPT_ID with --not-a-prompt or --type, or a session with --missed."""
    if not_a_prompt == (kind is not None) or (missed and not_a_prompt):
        raise click.UsageError("say --not-a-prompt, or --type TYPE (with --missed for a session)")
    from atlasbridge.lab.capture import FOLDER, reported
    from atlasbridge.lab.scenario_file import write_scenario

    public = _session_screen(which) if missed else _find_prompt(which)
    data = reported(public, public.get("tool") or "generic", f"TYPE_{kind.upper()}" if kind else None)
    path = write_scenario(home().root / FOLDER, data)
    click.echo(
        f"{path}\nrun it with: atlasbridge lab run {path}\nand attach it to the report: it holds what the screen shows"
    )


def _session_screen(said: str) -> dict[str, Any]:
    with hub_client() as hub:
        answer = hub.ask("screen", session_id=find_session_id(said, sessions_of(hub)))
    screen = answer.get("screen") or answer
    lines = screen.get("lines") or screen.get("text", "").split("\n")
    return {"screen": "\n".join(str(line) for line in lines), "tool": answer.get("tool", "")}


# `atlasbridge adapters`: the tools whose dialogs AtlasBridge knows, and how well.


@click.group("adapters")
def adapters_command() -> None:
    """List the tools AtlasBridge knows well; any other interactive program works with the generic rules."""


@adapters_command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List every tool with its own adapter or rules, and where they come from."""
    columns = ("tool", "commands", "versions seen", "from", "installed", "health")
    print_found(describe_adapters(home()), as_json, columns, _adapter, "none")


def _adapter(one: dict[str, Any]) -> tuple[str, ...]:
    name, commands, versions = one["name"], " ".join(one["commands"]), ", ".join(one["versions"])
    return name, commands, versions, one["from"], one["installed"] or "not installed", one["health"]


@adapters_command.command("show")
@click.argument("name")
@json_option
def show_adapter(name: str, as_json: bool) -> None:
    """Show one tool: its rules and menus, and whether its installed version was tested."""
    found = {item["name"]: item for item in describe_adapters(home())}
    if name not in found:
        raise AtlasBridgeError(f"there is no adapter for {name!r}", f"known: {', '.join(found)}")
    known = found[name]
    if known["installed"]:
        known["state"] = _tested_state(known["version"], known["versions"])
    if as_json:
        print_json(known)
        return
    for title, value in known.items():
        if value or title == "installed":
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value or "no"
            echo(f"  {title:10}  {shown}")


@adapters_command.command("update")
@click.option(
    "--from", "source", default="", metavar="FILE_OR_URL", help="Where the signed rules are; default: as last time."
)
@click.option("--trust", default="", metavar="KEY", help="Trust rules signed with this key from now on.")
@json_option
def update_command(source: str, trust: str, as_json: bool) -> None:
    """Fetch signed rules for tools' dialogs, try them on their own examples, and use them in new sessions."""
    done = update_dialects(home(), source, trust)
    if as_json:
        print_json(done)
        return
    for name in done["updated"]:
        click.echo(f"{name}: rules of serial {done['serial']}, tried on {done['dialects'][name]['examples']} examples")
    for name in done["revoked"]:
        click.echo(f"{name}: taken back by its author; the packaged rules are used")


@adapters_command.command("revert")
@click.argument("names", nargs=-1)
def revert(names: tuple[str, ...]) -> None:
    """Use the packaged rules again, for these tools or for all that were updated."""
    gone = revert_dialects(home(), names)
    click.echo(f"The packaged rules are used again: {', '.join(gone)}" if gone else "No rules were updated.")


def _tested_state(version: str, verified: list[str]) -> str:
    if not version:
        return "the installed version is not known"
    if version in verified:
        return "every dialog was verified with this version"
    return "other versions were verified; unknown dialogs go by the generic rules"
