"""Chats in the reader's language: every text is in every catalogue, none stands outside, and times are the reader's."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from string import ascii_uppercase

import pytest
from tests.channels import prompts
from tests.channels.mini_hub import MiniHub
from tests.support.chat_stage import stage, text_of

from atlasbridge import channels
from atlasbridge.channels.commands import COMMANDS
from atlasbridge.channels.excerpt import KIND_WORDS
from atlasbridge.channels.language import DAYS, LANGUAGES, PLACES, Reader, at_time, hub_says, reading, say_digest, t
from atlasbridge.core.daemon.escalation import render_digest
from atlasbridge.core.policy.rule import SPANS

FOLDER = Path(str(channels.__path__[0]))
# The settings' descriptions are English, as is what the hub's log says. `setup` says its dialogue in the same words.
MODULES = [
    *(one for one in sorted(FOLDER.rglob("*.py")) if one.name not in ("settings.py", "registry.py", "language.py")),
    FOLDER.parent / "cli" / "setup.py",
]
OTHERS = [tag for tag in LANGUAGES if tag != "en"]
HOLES = re.compile(r"\{\w+\}")
WORDS = re.compile(r"[A-Za-z]{2,} [a-z]{2,}|^[A-Z][a-z]{2,}[.:?…]?$")
# Errors for the log and for `hub status`, audit entries, and what other programs read.
NOT_READ = re.compile(
    r"log\.\w+|(click\.)?\w*Error|Unreachable|Refused|OutsideFolder|(self\._strangers|self\._?hub_api)\.note|super\(\).__init__"
    r"|re\.compile|self\._move|own_python|install_line|httpx\.\w+|_why_nobody|show_words|click\.(option|command)"
)
# Programs and services read these, or they are names.
FOR_PROGRAMS = {
    *("AtlasBridge", "Telegram", "Slack", "Matrix", "Discord", "Codex", "Enter", "Ping", "the server ended the line"),
    *("chat not found", "message is not modified", "Give a time", "eply to this message", "eply in this thread"),
    *(
        "Authorization",
        "{sign}new NAME, or {sign}new NAME: FIRST INSTRUCTION",
        "reply to its message",
        "reply in its thread",
        "nobody was reached: ",
        "no operator is configured",
    ),
    '{"kept": "ids only: a secret is being asked for"}',
}
COMMAND_LINES = re.compile(r"\s*(\(\{\}: )?atlasbridge [^.]*|Bearer \{\}|(on|end) run.*|display .*|if item .*|end if")
HINTS = re.compile(r"(HINT|IS_ENCRYPTED|USE_ANOTHER|MANIFEST|SCRIPT|FATAL)(: .*)? = |PLACES = \(|hint = '")
# The parts of the hub whose sentences a chat shows: the gate, receipts, scheduled answers, the queue, digests.
HUB = [
    *("core/prompt/gate.py", "core/prompt/answer.py", "core/routing/router.py"),
    *(f"core/daemon/{name}.py" for name in ("receipts", "replies", "prompts", "scheduled_answers", "escalation")),
    *("core/daemon/sessions.py", "core/daemon/parts.py"),
]
# The hub puts these together from parts, such as forms for one and many.
COMPOSED = (
    *("1 more question", "1 queued instruction", "Nobody answered in time;", "Sent ", "Removed", "This is a menu"),
    *(
        "Choose one of",
        "Text must be one line",
        "with {answer}",
        "The tool took",
        "{what}; the hub uses it",
        "That prompt is no longer open. {s",
    ),
)


@cache
def catalogue(tag: str, place: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((place / f"{tag}.json").read_text("utf-8"))
    return found


def literal(node: ast.AST) -> str:
    """The text of a literal; each value of an f-string is a hole."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return ""


def literals(tree: ast.AST) -> Iterator[str]:
    """Each literal that a person could read: no docstrings, errors, hints of errors."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.Call) and NOT_READ.fullmatch(ast.unparse(node.func)):
            continue
        if isinstance(node, ast.Assign | ast.AnnAssign) and HINTS.match(ast.unparse(node)):
            continue
        if text := literal(node):
            yield text
            for part in node.values if isinstance(node, ast.JoinedStr) else ():
                yield from literals(part) if isinstance(part, ast.FormattedValue) else ()
        else:
            yield from literals(node)


def outside(code: str, known: Iterable[str]) -> list[str]:
    """Literals with words in them that no catalogue knows of."""
    said = {text for text in literals(ast.parse(code)) if WORDS.search(HOLES.sub("", text.replace("{}", "")).strip())}
    unknown = said - set(known) - FOR_PROGRAMS
    return sorted(text for text in unknown if not COMMAND_LINES.fullmatch(text))


def all_said() -> set[str]:
    """Every literal of the channels, the sentences of the hub, and the forms for threads."""
    found = {text for path in MODULES for text in literals(ast.parse(path.read_text()))}
    threads = {re.sub("to (this|its) message", lambda m: f"in {m[1]} thread", text) for text in found}
    verbs = {one.verb for one in KIND_WORDS.values()} - {"{text}"}
    return found | threads | set(COMMANDS.values()) | verbs | {span.label for span in SPANS} | {DAYS}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(FOLDER.parent)))
def test_no_text_of_a_chat_stands_outside_the_catalogues(path: Path) -> None:
    assert outside(path.read_text(), catalogue("de", PLACES[0]) | catalogue("de", PLACES[1])) == []


def test_a_text_that_stands_outside_is_found() -> None:
    assert outside('self.say(origin, "Nothing was sent.")', []) == ["Nothing was sent."]
    assert outside('self.say(origin, f"{name} is far away.")', []) == ["{} is far away."]
    assert outside('raise ChannelError("nobody is here")', []) == []


@pytest.mark.parametrize("tag", OTHERS)
def test_the_chats_own_catalogue_has_what_the_page_does_not_say(tag: str) -> None:
    own, page = catalogue(tag, PLACES[1]), catalogue(tag, PLACES[0])
    assert sorted(set(own) & set(page)) == []
    assert set(own) == set(catalogue("de", PLACES[1]))
    for english, other in own.items():
        assert set(HOLES.findall(english)) == set(HOLES.findall(other)), english
        assert english.count("|") == other.count("|") and other.strip(), english


# What a page or a chat shows of the two servers: each refusal, and the page to log in. Commands and machines read the
# refusals of the others.
FOR_COMMANDS = ("database", "machine_link", "machines", "migrate")
SERVERS = [
    *(f"web/{name}.py" for name in ("api", "admin_api", "prompt_api", "session_api", "push")),
    *sorted(
        f"fleet/server/{one.name}"
        for one in (FOLDER.parent / "fleet" / "server").glob("*.py")
        if one.stem not in FOR_COMMANDS
    ),
    *("core/daemon/operations.py", "core/daemon/rules.py"),
]
SERVED = sorted(
    str(one.relative_to(FOLDER.parent))
    for place in ("web", "fleet/server")
    for one in (FOLDER.parent / place).glob("*.py")
)
SAYS = {"Refused", "Reject", "Denied", "ConfigError", "problem", "login_page", "refuse", "t"}
FOR_OTHER_PROGRAMS = {
    *("send the body as application/json", "this is not the body that was signed", "number {} comes first"),
    *("show a token, or open the page by a link from: atlasbridge web", "Show a token with the scope ask."),
    *("Give the token of --metrics-token-file, or log in.", "the page does not know {}", "the hub does not know {}"),
    *("cannot read {}: {}", "name the project's folder"),  # `policy trust`
    *("are both the same version?", "{} is asked over HTTP only", "this id belongs to another question"),
    *("a secret is handed over only over loopback or TLS", "there is no such question of yours", "{} ({})", "{} {}"),
    *(
        "too many questions are waiting",
        "the page is off: another program listens on its port",
        "the page is not on (yet)",
    ),
    *("list them with: atlasbridge ps", "see: atlasbridge hub status", "the issuer {} is not reached over TLS"),
    *("try again in a moment", "list them with: atlasbridge passkey list", "list them with: atlasbridge web devices"),
    *("listening on {} without TLS would send tokens in the clear", "write it as https://…"),
    "give --cert and --key, or put a proxy with TLS before it and say --url https://…",
    *("cannot listen on {}:{}: {}", "choose another --port", "The database cannot be reached."),  # of /readyz
    # in the API's own document
    *("Needs the scope `{}`.", "Prompts, sessions and records."),
    "Server-sent events; the page of the API says what each has in it.",
}


def server_sentences(name: str) -> Iterator[str]:
    """The literals that the calls in SAYS get, with holes; `t` and constants count as well."""
    tree = ast.parse((FOLDER.parent / name).read_text())
    texts = {
        one.targets[0].id: literal(one.value)
        for one in ast.walk(tree)
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and literal(one.value)
    }
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or ast.unparse(call.func).rpartition(".")[2] not in SAYS:
            continue
        for given in call.args:
            ways = [given.body, given.orelse] if isinstance(given, ast.IfExp) else [given]
            for way in ways:
                text = texts.get(way.id, "") if isinstance(way, ast.Name) else literal(way)
                if WORDS.search(text.replace("{}", "")) or text in ("{} answered first.",):
                    yield text


@pytest.mark.parametrize("name", SERVERS)
def test_no_sentence_of_the_servers_stands_outside_the_catalogues(name: str) -> None:
    known = {HOLES.sub("{}", text) for place in PLACES for text in catalogue("de", place)}
    said = {HOLES.sub("{}", text) for text in server_sentences(name)}
    assert sorted(said - known - FOR_OTHER_PROGRAMS) == []


def is_sentence(text: str) -> bool:
    """Whether it has a capital letter, a sign at its end and three words; a pattern takes seconds for a query."""
    words = text[1:].split(" ")
    begun = [word for word in words[:-1] if re.search(r"\w", word)]
    return text[:1] in {"{", *ascii_uppercase} and text.endswith((".", "…", "?")) and len(begun) > 1


def full_sentences(code: str) -> set[str]:
    """The literals that are whole sentences, wherever they are: in a call, a constant, a field of a message."""
    return {HOLES.sub("{}", text) for text in literals(ast.parse(code)) if is_sentence(text)}


@pytest.mark.parametrize("name", SERVED)
def test_no_whole_sentence_of_the_servers_stands_outside_the_catalogues(name: str) -> None:
    known = {HOLES.sub("{}", text) for place in PLACES for text in catalogue("de", place)}
    said = full_sentences((FOLDER.parent / name).read_text())
    assert sorted(said - known - FOR_OTHER_PROGRAMS) == []


def test_a_sentence_in_any_place_is_found() -> None:
    assert full_sentences('told["sentence"] = f"Given to {name}, which is silent."') == {
        "Given to {}, which is silent."
    }
    assert full_sentences('"""A module. It has words."""\nlog.info("It has started %s.", name)') == set()


def test_a_server_answers_in_the_language_that_a_request_asks_for() -> None:
    with reading(Reader("de")):
        assert hub_says("There is no such prompt.") == "Es gibt keine solche Frage."
        assert hub_says("There is no person named 'Ada'.") == "Niemand heißt 'Ada'."
        assert hub_says("Ada was removed here. An administrator can add you again: fleet people add Ada").startswith(
            "Ada wurde"
        )


def hub_sentences() -> set[str]:
    return {text for name in HUB for text in literals(ast.parse((FOLDER.parent / name).read_text()))}


def all_constants() -> set[str]:
    """Every text in the servers' modules."""
    said: set[str] = set()
    for name in (*SERVERS, *SERVED):
        nodes = ast.walk(ast.parse((FOLDER.parent / name).read_text()))
        said |= {str(node.value) for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return said


def test_every_entry_is_said_by_a_chat_or_by_the_hub() -> None:
    """The words between the holes of an entry are in some literal of the code."""
    said = "\n".join(all_said() | hub_sentences() | all_constants())
    pieces = {
        key: [part for form in key.split("|") for part in HOLES.split(form) if len(part) > 9]
        for key in catalogue("de", PLACES[1])
        if not key.startswith(COMPOSED)
    }
    assert [key for key, parts in pieces.items() if not all(part in said for part in parts)] == []


def test_the_hubs_sentences_are_translated_by_their_shape() -> None:
    sentences = [text for text in hub_sentences() if re.match(r"[A-Z▶]", text) and text.endswith(".")]
    assert len(sentences) > 40
    with reading(Reader("de")):
        said = [re.sub(r"\{\w*\}", "X", text) for text in sentences]
        assert [text for text in said if hub_says(text) == text and not text.startswith(COMPOSED)] == []


def test_names_commands_and_answers_in_a_sentence_of_the_hub_stay_as_they_are() -> None:
    with reading(Reader("de")):
        assert hub_says('Sent "Yes" to No.') == '"Yes" an No gesendet.'
        told = hub_says('It was already answered with "No" by Ada (Telegram) at 14:02:00 UTC.')
        assert told == 'Sie wurde schon beantwortet: mit "No" von Ada (Telegram) um 14:02:00 UTC.'
        assert hub_says("Any words of a person.") == "Any words of a person."
        assert hub_says("x" * 500) == "x" * 500
    assert hub_says("The tool moved on.") == "The tool moved on."


def test_a_digest_has_its_own_lines_translated_and_quotes_stay() -> None:
    quoted = "• app: “Session started: rm”"
    with reading(Reader("de")):
        assert say_digest(render_digest([quoted], 0)) == f"1 weitere Frage wartet:\n{quoted}"
        many = say_digest(render_digest([quoted] * 30, 2)).split("\n")
        assert many[0] == "30 weitere Fragen warten, 2 erledigt:" and many[1] == quoted
        assert many[-1].startswith("… und ") and many[-1].endswith(" weitere")
        assert say_digest(render_digest([], 3, ["api", "shop", "api"])) == "Erledigt: api, shop"
        long = say_digest(render_digest([], 99, [f"session-{number}" for number in range(99)]))
        assert long.startswith("Erledigt: session-0, session-1, ") and long.endswith(", …") and len(long) < 500


def test_moments_are_on_the_readers_clock_and_days_in_the_readers_language() -> None:
    noon = 1_763_467_200.0  # Tuesday, 18 November 2025, 12:00 UTC
    with reading(Reader("de", "Asia/Tokyo")):
        assert at_time(noon, "%a %H:%M %Z") == "Di 21:00 JST"
    with reading(Reader("", "America/New_York")):
        assert at_time(noon, "%a %H:%M %Z") == "Tue 07:00 EST"
    with reading(Reader("ja", "Nowhere/Land")):
        assert at_time(noon, "%a").endswith("火")


def test_a_text_without_translation_is_english_and_forms_follow_the_count() -> None:
    with reading(Reader("xx")):
        assert t("Nothing is here, {name}.", name="Ada") == "Nothing is here, Ada."
    assert t("1 pending prompt|{count} pending prompts", count=1) == "1 pending prompt"
    with reading(Reader("de")):
        assert t("1 pending prompt|{count} pending prompts", count=3) == "3 offene Fragen"


async def test_a_person_chooses_the_language_of_a_chat_and_everything_follows() -> None:
    async with stage("telegram") as play:
        play.command("language klingon")
        await play.reads("de (Deutsch)")
        play.command("language de")
        await play.reads("Ich schreibe hier ab jetzt Deutsch.")
        record = await play.ask(prompts.YES_NO)
        message = play.message_of(record)
        assert "Läuft ab in" in text_of(message) and "✅ Ja" in play.buttons(message)
        play.command("sessions")
        await play.reads("1 offene Frage")
        play.press(message, "❌ Nein")
        await play.until(lambda: "Nein" in text_of(play.message_of(record)).split("\n")[0], "the outcome")


@pytest.mark.parametrize("name", ["telegram", "slack"])
async def test_the_service_says_which_language_a_person_speaks(name: str) -> None:
    async with stage(name, language="es-ES", zone="Asia/Tokyo") as play:
        play.command("help")
        await play.reads("lo que está en marcha")
        record = await play.ask(prompts.YES_NO)
        text = text_of(play.message_of(record))
        assert "Caduca en" in text
        assert ("JST" in text) == (name == "slack")  # Telegram knows no time zones
        await play.channel.notify("Session ended: bash (exit 0)", play.hub_api.session(record.session_id))
        await play.reads("Sesión terminada: bash (estado 0)")


async def test_the_configuration_outranks_the_service_and_commands_are_announced_in_each_language() -> None:
    hub = MiniHub()
    hub.readers_of["telegram:1001"] = ("ja", "Asia/Tokyo")
    async with stage("telegram", hub, language="es") as play:
        record = await play.ask(prompts.YES_NO)
        assert "期限まで" in text_of(play.message_of(record)) and "JST" in text_of(play.message_of(record))
        await play.until(lambda: set(play.server.commands_in) == {"", "de", "es", "ja"}, "the commands")
        assert play.server.commands_in["de"][1]["description"] == "was läuft"


async def test_a_latecomer_reads_who_was_first_in_the_own_language() -> None:
    async with stage("telegram", language="de") as play:
        play.command("help")
        await play.reads("was läuft")
        record = await play.ask(prompts.YES_NO)
        message = play.message_of(record)
        play.press(message, "✅ Ja")
        await play.until(lambda: "Ja" in text_of(play.message_of(record)).split("\n")[0], "the outcome")
        play.write("n", reply_to=message)
        await play.reads("Zu spät.")
