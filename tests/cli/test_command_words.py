"""One word for each idea: the first screen of the help, old words that are understood and told, options alike."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from atlasbridge.cli.catalogue import COMMANDS, GROUPS, render_help
from atlasbridge.cli.columns import fold, lay_out
from atlasbridge.cli.help import find_help, man_pages
from atlasbridge.cli.main import cli, root_context
from atlasbridge.cli.run import parse_run

ROOT = Path(__file__).resolve().parents[2]
DAILY = ["run", "attach", "ps", "logs", "kill", "approvals", "reply", "ask", "web", "setup", "status", "doctor"]


def leaves() -> list[tuple[str, click.Command]]:
    found: list[tuple[str, click.Command]] = []

    def walk(name: str, command: click.Command) -> None:
        if isinstance(command, click.Group):
            for word, inner in command.commands.items():
                walk(f"{name} {word}", inner)
        found.append((name, command))

    context = root_context()
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        walk(name, command)
    return found


def test_the_twelve_of_every_day_are_on_the_first_screen() -> None:
    lines = render_help().splitlines()
    assert list(next(iter(GROUPS.values()))) == DAILY
    first = "\n".join(lines[:23])
    assert all(f"  {name} " in first for name in DAILY) and all(len(line) <= 100 for line in lines)


@pytest.mark.parametrize("words", [("run",), ("attach",), ("hub", "start"), ("grants", "remove"), ("ps",)])
def test_help_shows_the_help_of_any_command(words: tuple[str, ...]) -> None:
    assert "sage: atlasbridge " + " ".join(words) in find_help(words)


@pytest.mark.parametrize(
    ("old", "now"),
    [
        ("desk", "fleet"),
        ("join", "fleet join"),
        ("leave", "fleet leave"),
        ("grants revoke", "grants remove"),
        ("later revoke", "later remove"),
        ("queue off", "queue remove"),
        ("token create", "token add"),
        ("token revoke", "token remove"),
        ("web revoke", "web remove"),
        ("config unset", "config remove"),
        ("shim install", "shim add"),
        ("shim uninstall", "shim remove"),
    ],
)
def test_an_old_word_is_understood_and_told(old: str, now: str) -> None:
    done = CliRunner().invoke(cli, [*old.split(), "--help"], prog_name="atlasbridge")
    assert done.exit_code == 0 and f"is called atlasbridge {now} now" in done.output
    assert f"Usage: atlasbridge {now}" in done.output


def test_an_option_has_one_short_form_everywhere() -> None:
    short = {"--all": "-a", "--quiet": "-q", "--follow": "-f", "--lines": "-n", "--detach": "-d"}
    for name, command in leaves():
        for parameter in command.params:
            for option, letter in short.items():
                if option in parameter.opts:
                    assert letter in parameter.opts, f"{name} {option}"


def test_what_is_taken_back_is_removed() -> None:
    words = {name.rpartition(" ")[2] for name, command in leaves() if " " in name and not command.hidden}
    assert not words & {"revoke", "off", "unset", "delete", "create", "deny"}


def test_every_duration_is_written_in_one_way() -> None:
    numbers = [
        f"{name} {parameter.opts[-1]}"
        for name, command in leaves()
        for parameter in command.params
        if parameter.type is click.FLOAT and not getattr(parameter, "hidden", False)
    ]
    assert numbers == []


def test_what_a_group_says_it_can_do_is_a_command_of_it() -> None:
    """The help page says "list, add, remove": each of these words works."""
    groups = dict(leaves())
    for name, (_, about) in COMMANDS.items():
        group, (_, colon, words) = groups[name], about.rstrip(".").partition(": ")
        if isinstance(group, click.Group) and colon and name not in ("lab", "fleet"):
            assert set(words.split(", ")) <= set(group.commands), name


NAMED = re.compile(r"(?<![\w./-])atlasbridge ([a-z][a-z-]*(?: (?:--?[a-z][a-z-]*|[\w.~-]+))*)")
NO_HINTS = (
    "atlasbridge https",
    "atlasbridge shim install",
    "atlasbridge answer",
)  # an address, a mark, a digest's text


def named_commands() -> Iterator[tuple[str, str]]:
    """Each command line in a message of the source or in a document, and where it is."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from ((found[1], f"{path.name}:{node.lineno}") for found in NAMED.finditer(node.value))
    for path in (*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "SECURITY.md"):
        yield from ((found[1], path.name) for found in NAMED.finditer(path.read_text(encoding="utf-8")))


def test_every_command_that_a_message_or_a_page_names_exists_with_its_options() -> None:
    wrong, groups = [], dict(leaves())
    for line, where in named_commands():
        if f"atlasbridge {line}".startswith(NO_HINTS):
            continue
        name, *rest = f"{line} ".partition(" -- ")[0].split()
        while isinstance(groups.get(name), click.Group) and rest and re.fullmatch(r"[a-z][a-z-]*", rest[0]):
            name = f"{name} {rest.pop(0)}"
        known = groups.get(name)
        options = {option for one in known.params for option in (*one.opts, *one.secondary_opts)} if known else set()
        unknown = [word for word in rest if word.startswith("-") and word not in {*options, "--help", "-"}]
        if known is None or (unknown and name != "run"):
            wrong.append(f"{where}: atlasbridge {line}")
    assert wrong == []


def test_run_takes_d_for_detach() -> None:
    assert parse_run(["-d", "--name", "x", "claude"]).detach


def test_every_command_has_a_man_page_that_names_its_options() -> None:
    pages = dict(man_pages())
    assert {f"atlasbridge-{name}.1" for name in COMMANDS} < set(pages)
    assert "\\-\\-no\\-keep" in pages["atlasbridge-run.1"] and ".SH GRANTS REMOVE" in pages["atlasbridge-grants.1"]
    assert all(page.startswith(".TH ") for page in pages.values())


def test_man_pages_are_written_into_a_folder(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["help", "--man", str(tmp_path / "man1")])
    assert done.exit_code == 0 and (tmp_path / "man1" / "atlasbridge-ps.1").exists()


def test_a_table_breaks_between_words_and_loses_no_character() -> None:
    text = "Install the thirty modules to /usr/local and restart the server afterwards, please?"
    lines = lay_out(("prompt", "question"), [("12345678", text)], 50)
    assert not any(line.rstrip().endswith(("modu", "serv", "restar")) for line in lines)
    assert "".join(fold(text, 20)) == text and max(map(len, fold(text, 20))) <= 20
    assert fold("x" * 45, 20) == ["x" * 20, "x" * 20, "x" * 5]
