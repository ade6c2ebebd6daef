"""`atlasbridge policy`: checks, explains, tests and suggests rules that answer for you."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from atlasbridge.cli.by_name import find_prompt_id, id_beginning
from atlasbridge.cli.help import complete_prompts
from atlasbridge.cli.printing import (
    DURATION,
    Renaming,
    echo,
    home,
    hub_client,
    json_option,
    print_found,
    print_json,
    print_table,
)
from atlasbridge.core.clock import SystemClock, iso
from atlasbridge.core.errors import AtlasBridgeError, ConfigError, HubUnavailable
from atlasbridge.core.policy.offer import PastQuestion
from atlasbridge.core.policy.rule import Case, Policy, Verdict
from atlasbridge.core.prompt.model import Subject, SubjectKind, SubjectSource
from atlasbridge.core.system import OWN_FILE

# Past prompts from the hub, on which rules are tested.


def case_of(item: dict[str, Any]) -> Case:
    """A past prompt as a test case. If a part was redacted, the case stays uncertain."""
    told = item["subject"]
    subject = None
    if told is not None:
        subject = Subject(
            SubjectKind(told["kind"]),
            told["text"] if told["certain"] else "",
            told["folder"],
            SubjectSource(told["source"]),
            told["complete"],
            told["text"],
            told["target"],
        )
    return Case(
        subject, item["tool"], item["label"], item["folder"], os.path.expanduser("~"), item.get("real_target", "")
    )


def answered(items: Iterable[dict[str, Any]]) -> list[PastQuestion]:
    return [PastQuestion(case_of(item), item["agreed"]) for item in items]


def past_rows(
    policy: Policy, items: Iterable[dict[str, Any]], judge_case: Callable[[Policy, Case], Verdict]
) -> list[dict[str, Any]]:
    rows = []
    for item in items:
        if item["secret"] or item["idle"]:
            continue
        verdict = judge_case(policy, case_of(item))
        said = {True: "allow", False: "deny", None: verdict.verdict.value}[item["agreed"]]
        subject = item["subject"] or {}
        rows.append(
            {
                "prompt_id": item["prompt_id"],
                "created_at": item["created_at"],
                "verdict": verdict.verdict.value,
                "rule": verdict.rule,
                "reason": verdict.reason,
                "answer": item["answer"],
                "against": verdict.verdict.value != "ask" and verdict.verdict.value != said,
                "what": subject.get("text") or item["excerpt"],
            }
        )
    return rows


policy_option = click.option(
    "--policy", "file", type=click.Path(path_type=Path), help="This rule file instead of your own."
)


@click.group("policy")
def command() -> None:
    """Rules that answer for you: check, explain, test, suggest."""


@command.command()
@policy_option
def check(file: Path | None) -> None:
    """Check the rule file and its examples; report the line of a mistake.  Exit status 2 if it is invalid."""
    policy = load(file)
    if not rule_file(file).exists():
        echo(f"{rule_file(file)} does not exist yet: everything is asked. Start with: atlasbridge policy suggest")
    counts = {
        verdict: sum(rule.verdict.value == verdict for rule in policy.rules) for verdict in ("allow", "ask", "deny")
    }
    if policy.rules:
        said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        click.echo(f"{rule_file(file)}: {len(policy.rules)} rules are valid ({said})")
    for line in wildcards(policy):
        click.echo(line)


def wildcards(policy: Policy) -> list[str]:
    """What the wildcards of allow rules match: if the program is known, not every argument."""
    from atlasbridge.core.policy.offer import say_wildcard
    from atlasbridge.core.policy.rule import Say

    rules = [(rule, say_wildcard(rule.command)) for rule in policy.saying(Say.ALLOW) if rule.command is not None]
    return [f"  {rule.name}: the wildcard of `{rule.command}` {said}" for rule, said in rules if said]


@command.command()
@click.argument("words", nargs=-1)
def grammar(words: tuple[str, ...]) -> None:
    """Show what a wildcard matches after these words, such as: git log.  Without words: list known programs."""
    from atlasbridge.core.policy.grammar import PROGRAMS, describe_grammar, find_grammar

    if not words:
        echo(" ".join(sorted({name.split(" ")[0] for name in PROGRAMS})))
        return
    beginnings = (" ".join(words[:count]) for count in range(len(words), 0, -1))
    found = next(filter(None, map(find_grammar, beginnings)), None)
    if found is None:
        raise AtlasBridgeError(f"`{' '.join(words)}` is not known", "in a rule, write the words out")
    echo(f"`{found.name}` takes {describe_grammar(found.name, 1000)}")
    for sign, examples in (("allows", found.match), ("asks", found.no_match)):
        for text in examples:
            click.echo(f"  {sign:8}{text}")


@command.command()
@click.argument("prompt_id", required=False)
@click.option("--command", "line", help="A command line instead of a prompt.")
@click.option("--path", help="A file that would be changed instead of a prompt.")
@click.option("--url", help="A page that would be fetched instead of a prompt.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where the tool would run; this folder by default.")
@click.option("--tool", default="", help="The tool that would ask; any by default.")
@policy_option
@json_option
def explain(
    prompt_id: str | None,
    line: str | None,
    path: str | None,
    url: str | None,
    folder: Path | None,
    tool: str,
    file: Path | None,
    as_json: bool,
) -> None:
    """Show which rule applies to a prompt, a command, a file or a page, and why."""
    made_up = {kind: text for kind, text in (("command", line), ("edit", path), ("fetch", url)) if text is not None}
    if len(made_up) + (prompt_id is not None) != 1:
        raise click.UsageError("give one of PROMPT_ID, --command, --path and --url")
    case = prompt_case(prompt_id) if prompt_id is not None else made_up_case(*made_up.popitem(), folder, tool)
    verdict = judge_case(load(file), case)
    if as_json:
        print_json(verdict.to_json())
        return
    echo(verdict.sentence)
    if verdict.approvals > 1:
        click.echo(f"  {verdict.approvals} people must approve")
    for step in verdict.steps:
        click.echo(f"  {step}")


@command.command("test")
@click.option("--since", type=DURATION, default="7d", show_default=True, help="How far back, such as 7d or 12h.")
@policy_option
@json_option
def try_on_the_past(since: float, file: Path | None, as_json: bool) -> None:
    """Show what the rules would have done with past prompts; this answers nothing."""

    rows = past_rows(load(file), past(since), judge_case)
    if as_json:
        print_json(rows)
        return
    table = [
        (row["prompt_id"][:8], row["verdict"], row["rule"] or "-", row["answer"] or "-", row["what"][:80])
        for row in rows
    ]
    print_table(("prompt", "verdict", "rule", "you said", "what"), table, "no prompts in that time")
    for line in summary(rows):
        click.echo(line)


def summary(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return []
    spared = sum(row["verdict"] != "ask" for row in rows)
    against = sum(row["against"] for row in rows)
    lines = [f"{spared} of {len(rows)} would have been answered by a rule"]
    return [*lines, f"{against} of them against what you said"] if against else lines


@command.command()
@click.option("--since", type=DURATION, default="30d", show_default=True, help="How far back, such as 30d.")
@click.option(
    "--least", type=click.IntRange(1), default=2, show_default=True, help="How often you must have approved it."
)
@click.option("--add", is_flag=True, help="Append them to your rule file.")
@policy_option
@json_option
def suggest(since: float, least: int, add: bool, file: Path | None, as_json: bool) -> None:
    """Suggest rules for commands that you often allowed; never for those that remove, publish or change the user."""

    from atlasbridge.config.hub import shell_parser
    from atlasbridge.core.policy.offer import suggest as find

    asked = list(answered(past(since)))
    found = find(asked, load(file), shell_parser(), least)
    text = "\n".join(f"# allowed {item.count} times\n{item.to_toml()}" for item in found)
    if as_json:
        print_json([{"command": list(item.shape.words), "tool": item.tool, "count": item.count} for item in found])
    else:
        echo(text or nothing_yet(asked, least))
    if add and found:
        append(rule_file(file), text)


def nothing_yet(asked: list[PastQuestion], least: int) -> str:
    """How far a first suggestion is, and what counts for it."""
    whole = [item for item in asked if item.agreed and item.case.subject is not None and item.case.subject.certain]
    often = "once" if least == 1 else f"{least} times"
    return (
        f"nothing to suggest yet: you allowed {len(whole)} of {len(asked)} questions with a complete command,"
        f" and no similar ones {often} without a matching rule"
    )


def append(path: Path, text: str) -> None:
    """Append to the file, but only if the result is valid."""
    from atlasbridge.config.hub import shell_parser
    from atlasbridge.core.policy.reader import read_policy

    before = path.read_text(encoding="utf-8") if path.exists() else ""
    whole = f"{before.rstrip()}\n\n{text}".lstrip()
    read_policy(whole, shell_parser(), where=path.name, home=os.path.expanduser("~"))
    write(path, whole)
    click.echo(f"added to {path}", err=True)
    reload_hub()


@command.command()
def edit() -> None:
    """Open the rule file in your editor; it is saved only if it is valid."""
    path = rule_file(None)
    draft = path.with_name(path.name + ".draft")
    write(draft, path.read_text(encoding="utf-8") if path.exists() else EXAMPLE)
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    if subprocess.run([*shlex.split(editor), str(draft)], check=False).returncode:
        raise AtlasBridgeError("the editor failed; nothing was changed", f"your draft is {draft}")
    try:
        load(draft)
    except ConfigError as error:
        raise ConfigError(str(error), f"the old rules still apply; your draft is {draft}") from None
    os.replace(draft, path)
    click.echo(f"{path} is valid and saved")
    reload_hub()


@command.command()
@click.argument("folder", type=click.Path(path_type=Path), default=".")
@click.option("--remove", is_flag=True, help="Stop trusting them.")
def trust(folder: Path, remove: bool) -> None:
    """Trust a project's rules in .atlasbridge/policy.toml.  They can ask and deny, never allow.

    This trusts the file as it is now; trust it again after a change.
    """
    with hub_client(start=True) as hub:
        answer = hub.ask("policy.trust", folder=str(folder.resolve()), remove=remove)
    if remove:
        click.echo("no longer trusted" if answer["removed"] else "it was not trusted")
    else:
        click.echo(f"trusted: {', '.join(answer['rules']) or 'no rules'}")


EXAMPLE = """\
# Rules that answer for you.  The strictest rule that applies wins: deny, ask, allow.  atlasbridge policy check

# [[rule]]
# name = "tests"
# verdict = "allow"                        # allow | ask | deny
# command = ["npm", "run", "test*", "**"]  # words; * within a word; ** further words that do no harm
# folder = "~/src/*"                       # optional: tool, folder, label, path, host, kind, approvals, person, reason
# match = ["npm run test:unit"]
# no_match = ["npm run deploy"]
"""


def rule_file(file: Path | None) -> Path:
    from atlasbridge.bootstrap import load_configuration
    from atlasbridge.config.hub import policy_file

    return file or policy_file(home(), load_configuration(home(), os.environ))


def load(file: Path | None) -> Policy:
    from atlasbridge.config.hub import read_rules
    from atlasbridge.core.policy.rule import Policy

    path = rule_file(file)
    if file is not None and not path.exists():
        raise ConfigError(f"there is no file {path}", "name a rule file")
    return read_rules(path) if path.exists() else Policy()


def judge_case(policy: Policy, case: Case) -> Verdict:
    from atlasbridge.config.hub import own_places, shell_parser
    from atlasbridge.core.policy.judge import judge
    from atlasbridge.core.policy.rule import own_rules

    ours = own_rules(own_places(home(), rule_file(None))) if policy.rules else policy
    return judge(policy.joined(ours), case, shell_parser())


def made_up_case(kind: str, text: str, folder: Path | None, tool: str) -> Case:
    from atlasbridge.core.daemon.rules import folds_case, resolve_path
    from atlasbridge.core.policy.rule import Case
    from atlasbridge.core.prompt.model import Subject, SubjectKind, SubjectSource

    where = str((folder or Path.cwd()).expanduser().absolute())
    target = "" if kind == "command" else text
    subject = Subject(SubjectKind(kind), text, where, SubjectSource.CALLER, True, text, target)
    person = os.path.expanduser("~")
    return Case(subject, tool, "", where, person, any_tool=not tool, folds=folds_case(where), leads=resolve_path)


def prompt_case(prompt_id: str) -> Case:

    with hub_client() as hub:
        found = hub.ask("policy.cases", prompt_id=prompt_id)["cases"]
    if not found:
        raise AtlasBridgeError("there is no such prompt", "list them with: atlasbridge logs")
    return case_of(found[0])


def past(since_s: float) -> list[dict[str, Any]]:
    with hub_client(start=True) as hub:
        cases: list[dict[str, Any]] = hub.ask("policy.cases", since=iso(SystemClock().wall() - since_s))["cases"]
    return cases


def write(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | OWN_FILE, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def reload_hub() -> None:
    try:
        with hub_client() as hub:
            hub.ask("reload")
    except HubUnavailable:
        click.echo("the hub is not running; it reads them when it starts", err=True)
    else:
        click.echo("the hub uses them now", err=True)


# `atlasbridge grants`: adds a grant from a prompt, lists grants and revokes them.


@click.group("grants", cls=Renaming, renamed={"revoke": "remove"})
def grants_command() -> None:
    """What you allowed for a while: add from a prompt, list, remove."""


@grants_command.command("list")
@json_option
def list_grants(as_json: bool) -> None:
    """List what is allowed now, for how long, and by whom."""
    with hub_client() as hub:
        grants = hub.ask("grants")["grants"]
    print_found(grants, as_json, ("grant", "allows", "tool", "where", "left", "by"), _grant, "no grants")


def _grant(one: dict[str, Any]) -> tuple[str, ...]:
    return one["grant_id"][:8], one["allows"], one["tool"], where(one), left(one), one["by"]


@grants_command.command("remove")
@click.argument("grant_id", required=False, callback=id_beginning)
@click.option("-a", "--all", "everything", is_flag=True, help="All of them.")
@json_option
def revoke(grant_id: str | None, everything: bool, as_json: bool) -> int:
    """Remove a grant at once, by the beginning of its id."""
    if bool(grant_id) == everything:
        raise click.UsageError("give either a GRANT_ID or --all")
    with hub_client() as hub:
        ended = hub.ask("grant.revoke", grant_id=grant_id or "")["ended"]
    if as_json:
        print_json({"ended": ended})
    else:
        click.echo(f"ended: {', '.join(item[:8] for item in ended)}" if ended else "there is no such grant")
    return 0 if ended or everything else 1


@grants_command.command()
@click.argument("prompt_id", metavar="PROMPT", shell_complete=complete_prompts)
@click.option("--for", "for_s", type=DURATION, help="How long, such as 30m; at most 12h.")
@click.option("--times", type=click.IntRange(1, 1000), help="How many questions.")
@click.option("--session", "in_session", is_flag=True, help="In this session only; the default.")
@click.option("--folder", "in_folder", is_flag=True, help="In every session of this tool in this folder.")
@click.option("--preview", is_flag=True, help="Only show what it would allow.")
@json_option
def add(
    prompt_id: str,
    for_s: float | None,
    times: int | None,
    in_session: bool,
    in_folder: bool,
    preview: bool,
    as_json: bool,
) -> int:
    """Allow what this prompt asks, and similar requests, for a while; this also answers the prompt."""
    if in_session and in_folder:
        raise click.UsageError("give either --session or --folder")
    with hub_client() as hub:
        prompt_id, unclear = find_prompt_id(prompt_id, hub.ask("prompts")["prompts"])
        if unclear:
            raise AtlasBridgeError(unclear, "give the id: atlasbridge approvals --once")
        answer = hub.request(
            "grant.add", prompt_id=prompt_id, for_s=for_s, times=times, folder=in_folder, preview=preview
        )
    if as_json:
        print_json({name: value for name, value in answer.items() if name != "hint"})
    elif not answer.get("ok"):
        click.echo(f"Refused: {answer['message']}", err=True)
    else:
        print_grant(answer)
    return 0 if answer.get("ok") else 3


def print_grant(answer: dict[str, Any]) -> None:
    click.echo(f"{'granted' if answer['grant_id'] else 'would grant'}: {answer['words']}")
    for text in answer["would"]:
        click.echo(f"  allows        {text}")
    for text, why in zip(answer["would_not"], answer["why_not"], strict=True):
        click.echo(f"  does not      {text}\n                {why}")
    if answer.get("grant_id"):
        click.echo(f"end it with: atlasbridge grants remove {answer['grant_id'][:8]}")


def where(item: dict[str, Any]) -> str:
    return f"session {item['session_id'][:8]}" if item["session_id"] else str(item["folder"])


def left(item: dict[str, Any]) -> str:
    parts = []
    if item["seconds_left"] is not None:
        parts.append(f"{max(0, item['seconds_left']) // 60} min")
    if item["uses_left"] is not None:
        parts.append(f"{item['uses_left']} times")
    return ", ".join(parts) or "until the machine restarts"
