"""The examples of the five documents (`examples.md`, verbatim), each run, executed or compared with what is there.

A test names its examples; the last test here finds an example that no test names.  The entries of
`docs/specification.toml` name these tests.
"""

from __future__ import annotations

import ast
import asyncio
import dataclasses
import enum
import hashlib
import inspect
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import textwrap
import time
import types
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.specification.documents import BLOCKS, block, example
from tests.specification.rust import names, python
from tests.support.fake_telegram import FakeTelegram
from tests.support.hubs import NO_WEB, HubProcess, hub_process
from tests.support.ledgers import ask, open_ledger
from tests.support.playbook import READING, Playbook, Raised
from tests.support.terminal import ATLASBRIDGE, Terminal
from tests.support.waiting import wait_for

from atlasbridge import specification
from atlasbridge.adapters import base
from atlasbridge.adapters.external_adapter import REMEMBERED_KEYS
from atlasbridge.channels.callback import MAX_BYTES, encode_callback
from atlasbridge.channels.telegram.messages import question, render
from atlasbridge.channels.templates import render_buttons
from atlasbridge.core import prompt as core_prompt
from atlasbridge.core.prompt.model import TRANSITIONS, Confidence, confidence_band
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.lab.scenario import BasePromptLabScenario
from ptypool import pty_pool

ROOT = Path(__file__).parents[2]
ADA = 1001


def run(
    words: list[str], cwd: Path = ROOT, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=cwd,
        env={**os.environ, **(environ or {})},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def commands(text: str) -> list[list[str]]:
    """The command lines of a block, without comments."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [shlex.split(line, comments=True) for line in lines]


def executed(code: str, **names: Any) -> dict[str, Any]:
    exec(compile(code, "<example>", "exec"), names)
    return names


@pytest.fixture(scope="module")
def hub() -> Iterator[HubProcess]:
    with hub_process() as made:
        yield made


@pytest.fixture
def telegram() -> Iterator[FakeTelegram]:
    with FakeTelegram() as fake:
        yield fake


def stub_claude(folder: Path, code: str) -> dict[str, str]:
    """A program of that name, first on PATH."""
    program = folder / "claude"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(code)} "$@"\n')
    program.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


# ------------------------------------------------------------------ reliability


@example("reliability", 1)
@example("architecture", 3)
def test_the_four_tasks_have_their_names() -> None:
    named = set(re.findall(r"\b(pty_reader|stdin_relay|stall_watchdog|response_consumer)\b", block("reliability", 1)))
    assert named == set(re.findall(r"Task \d: (\w+)", block("architecture", 3))) and len(named) == 4
    assert all(inspect.iscoroutinefunction(getattr(specification.PTYSupervisor, name)) for name in named)


@example("reliability", 2)
async def test_the_injection_gate_is_a_lock_that_is_always_released() -> None:
    code = "async def hold(self):\n" + textwrap.indent(block("reliability", 2) + "    pass\n", "    ")
    supervisor = specification.PTYSupervisor(["true"])
    hold = executed(code)["hold"]
    await asyncio.wait_for(asyncio.gather(hold(supervisor), hold(supervisor)), 5)


@example("reliability", 3)
def test_run_claude_with_a_backend_is_understood(hub: HubProcess, tmp_path: Path) -> None:
    """Here it says that this is for Windows, and claude does not get the option."""
    ((name, *words),) = commands(block("reliability", 3))
    assert name == "atlasbridge"
    done = run(hub.command(*words), environ={**hub.environ, **stub_claude(tmp_path, "print('started')")})
    assert done.returncode == 2 and "Windows" in done.stderr and "started" not in done.stdout


@example("reliability", 4)
def test_the_thresholds_are_those_of_the_combination_logic() -> None:
    high, medium = map(float, re.findall(r"_THRESHOLD \(([\d.]+)\)", block("reliability", 4)))
    assert confidence_band(high) is Confidence.HIGH and confidence_band(high - 0.01) is Confidence.MED
    assert confidence_band(medium) is Confidence.MED and confidence_band(medium - 0.01) is Confidence.LOW


@example("reliability", 5)
@example("architecture", 8)
def test_what_is_ambiguous_has_the_three_actions_of_the_documents() -> None:
    prompt = (Playbook() >> "Do the migration\n" >> 0.6 << Raised("unknown")).prompt
    offered = " ".join(button.label.lower() for button in render_buttons(prompt))
    for number, document in ((5, "reliability"), (8, "architecture")):
        actions = re.findall(r"\[([A-Za-z /\d]+)\]", block(document, number))
        assert len(actions) == 3
        for action in actions:
            assert " ".join(action.lower().split(" / ")[0].split()[:2]) in offered, action
    assert len(prompt.excerpt) <= 200


@example("reliability", 6)
def test_the_commands_of_the_lab_run_as_they_are_written(hub: HubProcess) -> None:
    one, every, listing = commands(block("reliability", 6))
    assert one[-1] == "<scenario>" and every[-1] == "--all"
    for scenario in ("QA-001", "PartialLinePromptScenario"):
        done = run(hub.command(*one[1:-1], scenario), environ=hub.environ)
        assert done.returncode == 0 and "passed" in done.stdout, done.stdout + done.stderr
    assert "QA-001" in run(hub.command(*listing[1:]), environ=hub.environ).stdout
    assert "--all" in run(hub.command(*every[1:-1], "--help"), environ=hub.environ).stdout


@example("reliability", 7)
@example("reliability", 13)
@example("adapter interface", 22)
@pytest.mark.landing
def test_the_pytest_lines_collect_what_they_name() -> None:
    lines = commands(block("reliability", 7)) + commands(block("reliability", 13))
    for name, *words in lines + commands(block("adapter interface", 22)):
        assert name == "pytest"
        done = run([sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *words])
        assert done.returncode == 0 and re.search(r"\d+(?:/\d+)? tests collected|test_", done.stdout), done.stdout[
            -500:
        ]


@example("reliability", 8)
def test_a_scenario_has_the_attributes_and_methods_of_the_document() -> None:
    theirs = executed(block("reliability", 8), DetectorResult=specification.DetectorResult)["BasePromptLabScenario"]
    assert set(theirs.__annotations__) <= set(BasePromptLabScenario.__annotations__)
    for name in ("setup", "run", "assert_behavior"):
        ours = getattr(BasePromptLabScenario, name)
        assert inspect.iscoroutinefunction(ours)
        assert list(inspect.signature(ours).parameters) == list(inspect.signature(getattr(theirs, name)).parameters)


@example("reliability", 9)
def test_lab_list_shows_every_line_of_the_document(hub: HubProcess) -> None:
    shown = run(hub.command("lab", "list"), environ=hub.environ).stdout
    for line in block("reliability", 9).splitlines():
        if line.startswith("QA-"):
            qa_id, name, *platforms, status = line.replace(",", "").split()
            assert re.search(rf"{qa_id} +{name} +{', '.join(platforms)}.* {status}", shown) or qa_id == "QA-020", line
        elif line and "scenarios registered" not in line:
            assert line in shown or line.startswith("QA ID")
    assert re.search(r"\d+ scenarios registered\. Run with: atlasbridge lab run --all", shown)


@example("reliability", 10)
def test_the_lab_is_a_job_of_ci() -> None:
    words = "tests/prompt_lab -v --tb=short"
    assert words.split()[1:] == block("reliability", 10).split()[-2:]
    assert words in "".join(path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml"))


@example("reliability", 11)
@example("reliability", 12)
def test_the_commits_of_a_regression_can_be_made(tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    run([*git, "init", "-q"], tmp_path)
    for number in (11, 12):
        (tmp_path / f"file{number}").write_text("x")
        run(["git", "add", "-A"], tmp_path)
        ((name, *words),) = commands(block("reliability", number))
        assert name == "git" and run([*git, *words], tmp_path).returncode == 0


# ------------------------------------------------------------------ architecture


@example("architecture", 1)
@example("architecture", 2)
def test_the_parts_of_the_diagrams_are_there(hub: HubProcess) -> None:
    drawn = block("architecture", 2).replace("\\n", " ")
    for folder in re.findall(r"src/atlasbridge/[\w/]+", drawn):
        assert (ROOT / folder).is_dir(), folder
    for name in re.findall(r"\b(?:Base\w+|\w+Adapter|\w+Channel|PromptRouter|AuditWriter|verify_chain)\b", drawn):
        assert hasattr(specification, name), name
    for name in ("spawn", "read", "write", "resize", "terminate"):
        assert name in drawn and callable(getattr(specification.BasePTY, name))
    listed = run(hub.command("--help"), environ=hub.environ).stdout
    said = re.search(r"Click commands: ([^\"]+)", drawn)
    assert said is not None
    for name in re.findall(r"[a-z]+", said[1]):
        assert re.search(rf"^\s+{name}\b", listed, re.MULTILINE), name
    assert "atlasbridge.db" in block("architecture", 1) and (hub.home.root / "atlasbridge.db").exists()
    assert "audit.log" in block("architecture", 1) and (hub.home.root / "audit.log").exists()


def shows(hub: HubProcess, session_id: str, text: str) -> bool:
    return text in str(hub.ask("screen", session_id=session_id))


ANSWERED = "print('got', input('Continue? (y/n) '), flush=True); input()"


@example("architecture", 4)
@example("architecture", 11)
@example("architecture", 14)
@example("architecture", 21)
def test_two_real_sessions_go_through_the_sequence_and_get_their_own_replies(hub: HubProcess) -> None:
    for _ in range(2):
        done = hub.cli("run", "--detach", "--", sys.executable, "-c", ANSWERED)
        assert done.returncode == 0, done.stderr
    wait_for(lambda: len(hub.ask("prompts")["prompts"]) == 2)
    for prompt, value in zip(hub.ask("prompts")["prompts"], ("y", "n"), strict=True):
        assert hub.cli("reply", prompt["prompt_id"], value).returncode == 0
        wait_for(partial(shows, hub, prompt["session_id"], f"got {value}"))
        entries = [json.loads(line) for line in (hub.home.root / "audit.log").read_text().splitlines()]
        mine = [entry for entry in entries if entry.get("prompt_id") == prompt["prompt_id"]]
        names = [entry["event"] for entry in mine]
        for name in ("PROMPT_DETECTED", "PROMPT_ROUTED", "REPLY_RECEIVED", "REPLY_INJECTED"):
            assert name in names, names
        injected = mine[names.index("REPLY_INJECTED")]
        assert set(json.loads(block("architecture", 21))) <= set(injected)
        assert (injected["value"], injected["source"]) == (value, "operator")
    log = hub.home.root / "audit.log"
    whole = log.read_text()
    assert run(hub.command("audit", "verify"), environ=hub.environ).returncode == 0
    log.write_text(whole.replace('"value":"y"', '"value":"n"', 1).replace('"value": "y"', '"value": "n"', 1))
    assert log.read_text() != whole
    changed = run(hub.command("audit", "verify"), environ=hub.environ)
    assert changed.returncode == 1 and "entry" in changed.stdout + changed.stderr, changed
    log.write_text(whole)
    for session in hub.json("ps"):
        assert set(re.findall(r"^(\w+)", block("architecture", 11), re.MULTILINE)) <= set(session)
        assert re.fullmatch(
            r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", session["session_id"]
        )
        hub.cli("kill", session["session_id"])


@example("architecture", 5)
@example("architecture", 6)
@example("architecture", 7)
def test_the_event_and_its_enumerations_are_those_of_the_document() -> None:
    kinds = executed(block("architecture", 6), enum=enum)["PromptType"]
    sure = executed(block("architecture", 7), enum=enum)["Confidence"]
    names = {
        "PromptType": kinds,
        "Confidence": sure,
        "Any": Any,
        "datetime": datetime,
        "dataclass": dataclasses.dataclass,
    }
    event = executed(block("architecture", 5), **names)["PromptEvent"]
    assert [one.name for one in dataclasses.fields(core_prompt.PromptEvent)] == [
        one.name for one in dataclasses.fields(event)
    ]
    assert {one.name: one.value for one in core_prompt.PromptType} == {one.name: one.value for one in kinds}
    assert {one.name: one.value for one in core_prompt.Confidence} == {one.name: one.value for one in sure}


@example("architecture", 9)
def test_every_arrow_of_the_state_diagram_is_a_move() -> None:
    ours = {(source.name, target.name) for (source, _), target in TRANSITIONS.items()}
    drawn = re.findall(r"^\s+(\w+) --> (\w+) :", block("architecture", 9), re.MULTILINE)
    assert len(drawn) == 11 and [arrow for arrow in drawn if arrow not in ours] == []


@example("architecture", 10)
def test_the_guarded_update_of_the_document_changes_one_row_of_a_real_store(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    record = ask(ledger)
    ledger.close()
    given = {"prompt_id": record.prompt_id, "nonce": record.nonce, "now": record.created_at}
    given |= {"expected_current_status": "awaiting_reply", "new_status": "canceled"}
    with closing(sqlite3.connect(tmp_path / "atlasbridge.db")) as store:
        update = block("architecture", 10)
        assert re.fullmatch(r"[0-9a-f]{32}", record.nonce)
        names = ", ".join(
            row[1] for row in store.execute("PRAGMA table_info(prompts)") if row[1] not in ("id", "nonce")
        )
        second = f"INSERT INTO prompts (id, nonce, {names}) SELECT 'second', 'other', {names} FROM prompts"
        with pytest.raises(sqlite3.IntegrityError):  # a session has one open prompt
            store.execute(second)
        assert store.execute(update, {**given, "nonce": "another"}).rowcount == 0
        assert store.execute(update, {**given, "now": "9999"}).rowcount == 0
        assert store.execute(update, given).rowcount == 1
        assert store.execute(update, given).rowcount == 0


@example("architecture", 12)
@example("Claude adapter", 7)
def test_a_button_carries_the_four_fields_in_sixty_four_bytes(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    record = ask(ledger)
    ledger.close()
    fields = block("architecture", 12).strip().split(":")
    data = encode_callback(record, "y")
    assert len(data.encode()) <= MAX_BYTES and len(data.split(":")) == len(fields)
    assert re.fullmatch(r"ans:[0-9a-f]{8}:[0-9a-f]{8}:[0-9a-f]{16}:y", data)
    assert block("Claude adapter", 7).startswith("ans:")


@example("architecture", 15)
def test_a_channel_has_the_methods_of_the_document() -> None:
    names = {"ABC": ABC, "abstractmethod": abstractmethod, "PromptEvent": Any, "Session": Any}
    theirs = executed("from __future__ import annotations\n" + block("architecture", 15), **names)["BaseChannel"]
    assert theirs.__abstractmethods__ == specification.BaseChannel.__abstractmethods__
    for name in theirs.__abstractmethods__:
        ours = inspect.signature(getattr(specification.BaseChannel, name))
        assert list(ours.parameters) == list(inspect.signature(getattr(theirs, name)).parameters)


@example("architecture", 16)
@example("architecture", 17)
def test_adapters_and_their_registry_have_the_names_of_the_document() -> None:
    for number, owner in ((16, specification.ClaudeAdapter), (17, specification.AdapterRegistry)):
        (drawn,) = ast.parse(block("architecture", number)).body
        assert isinstance(drawn, ast.ClassDef)
        named = [one.name for one in drawn.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
        assert named and [name for name in named if not hasattr(owner, name)] == []
    assert specification.AdapterRegistry.get("claude") is specification.ClaudeAdapter
    assert specification.AdapterRegistry.get("no-such-tool") is specification.GenericPTYAdapter
    assert "claude" in specification.AdapterRegistry.list_supported()


@example("architecture", 18)
@example("architecture", 19)
@example("architecture", 20)
def test_the_tables_have_the_columns_of_the_document(tmp_path: Path) -> None:
    """But for the message id: several channels show a prompt, and `deliveries` has their ids."""
    open_ledger(tmp_path).close()
    memory = sqlite3.connect(":memory:")
    with closing(memory) as drawn, closing(sqlite3.connect(tmp_path / "atlasbridge.db")) as store:
        for number, table in ((18, "sessions"), (19, "prompts"), (20, "replies")):
            drawn.executescript(block("architecture", number))
            wanted = {row[1] for row in drawn.execute(f"PRAGMA table_info({table})")}
            found = {row[1] for row in store.execute(f"PRAGMA table_info({table})")}
            assert wanted - found <= {"telegram_msg_id"}
        assert "message_id" in {row[1] for row in store.execute("PRAGMA table_info(deliveries)")}
        assert store.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert (tmp_path / "atlasbridge.db").stat().st_mode & 0o077 == 0


@example("architecture", 13)
def test_text_that_could_mean_two_sessions_is_asked_back(telegram: FakeTelegram) -> None:
    """A reply to a prompt's message answers that prompt; plain text is asked back until one prompt is left."""
    assert "Multiple active sessions. Please reply directly" in block("architecture", 13)
    ada = telegram.person(ADA)

    def asked() -> list[Any]:
        return [one for one in ada.sees() if "name of it" in one["text"] and "Expires in" in one["text"]]

    with hub_process(telegram_settings(telegram)) as hub:
        for _ in range(2):
            hub.cli(
                "run", "--detach", "--", sys.executable, "-c", "print('got', input('Enter the name of it: ')); input()"
            )
        telegram.wait_for(lambda: len(asked()) == 2, "both prompts")
        telegram.pass_time(5)
        ada.write("blue")
        telegram.wait_for(lambda: "Which one do you mean?" in ada.last()["text"], "the question back")
        sessions = hub.json("ps")
        assert not any(shows(hub, one["session_id"], "got blue") for one in sessions)
        ada.write("green", reply_to=asked()[0])
        telegram.wait_for(lambda: any(shows(hub, one["session_id"], "got green") for one in sessions), "the reply")
        done = next(one["session_id"] for one in sessions if shows(hub, one["session_id"], "got green"))
        hub.cli("kill", done)
        telegram.wait_for(lambda: len(hub.json("ps")) == 1, "one session left")
        telegram.pass_time(5)
        ada.write("red")
        (left,) = hub.json("ps")
        telegram.wait_for(lambda: shows(hub, left["session_id"], "got red"), "the plain text")


def telegram_settings(telegram: FakeTelegram) -> str:
    return NO_WEB + (
        f'[channels.telegram]\nbot_token = "{telegram.token}"\nallowed_users = [{ADA}]\napi_url = "{telegram.url}"\n'
    )


@example("architecture", 22)
def test_the_operational_commands_run_as_they_are_written(hub: HubProcess, tmp_path: Path) -> None:
    text = block("architecture", 22).replace("~/", f"'{tmp_path}'/").replace("$(date +%Y%m%d)", "20260221")
    lines = commands(text)
    assert [words[1] for words in lines] == ["logs", "debug", "audit", "approvals", "status"]
    for name, *words in lines:
        assert name == "atlasbridge"
        if words == ["logs", "--tail"]:
            follower = hub.popen(*words)
            try:
                assert follower.stdout is not None and follower.stdout.readline()
                assert follower.poll() is None, "it follows the log"
            finally:
                follower.kill()
                follower.communicate()
        else:
            done = run(hub.command(*words), environ=hub.environ)
            assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "atlasbridge-debug-20260221.tar.gz").is_file()


# ------------------------------------------------------------------ the Claude adapter


@example("Claude adapter", 1)
@example("Claude adapter", 8)
@example("adapter interface", 23)
def test_a_session_of_claude_is_started_asked_answered_and_ended_in_the_documents_order(
    telegram: FakeTelegram, tmp_path: Path
) -> None:
    ada = telegram.person(ADA)
    words = block("Claude adapter", 1).split()
    assert words[:3] == ["atlasbridge", "run", "claude"]
    environ = stub_claude(tmp_path, "import sys\nprint(sys.argv[1:], input('Continue? (y/n) '))")
    with hub_process(telegram_settings(telegram)) as hub:
        hub.environ |= {**environ, "ATLASBRIDGE_CAPTURE_PROMPTS": "1"}
        assert "ATLASBRIDGE_CAPTURE_PROMPTS=1" in block("adapter interface", 23)
        hub.cli("run", "--detach", "claude", "--model", "opus")
        shown = telegram.wait_for(lambda: [one for one in ada.sees() if "Expires in" in one["text"]], "the prompt")
        ada.tap(shown[-1], "Yes")
        telegram.wait_for(lambda: "Session ended" in str(ada.sees()), "the end")
        texts = [one["text"] for one in ada.sees()]
        order = [
            next(at for at, text in enumerate(texts) if word in text) for word in ("started", "Continue?", "ended")
        ]
        assert order == sorted(order), texts
        wait_for(lambda: list((hub.home.root / "captured_scenarios").glob("*.json")), "the captured prompt")


@example("Claude adapter", 1)
def test_claude_has_the_terminals_size_and_colours_and_the_terminal_is_restored(
    hub: HubProcess, tmp_path: Path
) -> None:
    words = block("Claude adapter", 1).split()[1:3]
    shows = "import os, sys; print(os.get_terminal_size(), sys.argv[1:], '\\x1b[31mred\\x1b[0m', flush=True); input()"
    environ = {**hub.environ, **stub_claude(tmp_path, shows)}
    with Terminal((*ATLASBRIDGE, *words, "--model", "opus"), hub.home.root, rows=31, cols=97, env=environ) as terminal:
        terminal.wait_for("red")
        assert "columns=97, lines=31" in terminal.text() and "'--model','opus']" in "".join(terminal.text().split())
        assert b"\x1b[31mred\x1b[0m" in terminal.output
        assert terminal.is_raw()
        terminal.type("\r")
        assert terminal.wait_exit() == 0
        assert terminal.settings() == terminal.settings_before


PATTERNS = {2: "yes_no", 3: "confirm_enter", 4: "multiple_choice", 5: "free_text"}


@pytest.mark.parametrize("number", PATTERNS)
@example("Claude adapter", 2)
@example("Claude adapter", 3)
@example("Claude adapter", 4)
@example("Claude adapter", 5)
def test_every_pattern_of_the_document_is_detected(number: int) -> None:
    lines = []
    for line in block("Claude adapter", number).splitlines():
        if number == 2 and line.startswith("("):
            lines += [f"Continue {mark} " for mark in line.split(", ")]
        elif number == 2 and line.startswith("?"):
            lines += [f"Go on{mark} " for mark in line.split(", ")]
        elif "/..." in line:
            lines += [f"{verb} it? (y/n) " for verb in ("Proceed", "Continue", "Delete")]
        elif line.startswith(">"):
            lines.append("> ")
        elif line.startswith("Which"):
            continue  # without a list it asks for words, and is free text
        elif line == "[1/2/3]":
            lines.append("Which one [1/2/3] ")
        else:
            lines.append(line.replace("\\n", "\n") + " ")
    for line in lines:
        detector = specification.PromptDetector()
        event = detector.detect(line)
        assert event is not None and event.prompt_type.value == PATTERNS[number], (line, event)


@example("Claude adapter", 6)
def test_a_message_has_the_parts_of_the_template(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    record = ask(ledger, ttl_s=598.9)
    ledger.close()
    record = dataclasses_replace(record)
    session = SessionRecord(record.session_id, "claude", ("claude",), "/srv", 10, 11, record.created_at)
    text = render(question(record, session, "atlas"))["text"]
    for part in ("Claude Code", "Yes / No question", "Continue? (y/n)"):
        assert part in block("Claude adapter", 6) and part in text
    assert re.search(r"⏳ Expires in 9m 5\ds", block("Claude adapter", 6))
    assert re.search(r"⏳ Expires in \d+m \d+s \(\d\d:\d\d .*\) — default: n$", text), text


def dataclasses_replace(record: Any) -> Any:
    """With its end in ten minutes by the real clock, where the store's was set by hand."""
    from atlasbridge.core.clock import SystemClock, iso
    from atlasbridge.core.values import replace

    now = SystemClock().wall()
    return replace(record, created_at=iso(now), expires_at=iso(now + 598.9))


# ------------------------------------------------------------------ the frozen interface


@example("adapter interface", 1)
def test_the_frozen_interface_is_that_of_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole block is executed; names, fields, values, methods and their parameters are compared."""
    module = types.ModuleType("theirs")
    monkeypatch.setitem(sys.modules, "theirs", module)  # dataclasses look for the module of their class
    exec(compile(block("adapter interface", 1), "<example>", "exec"), vars(module))
    theirs = vars(module)
    for name in ("PromptEvent", "Reply"):
        ours = dataclasses.fields(getattr(base, name))
        assert [(one.name) for one in ours] == [one.name for one in dataclasses.fields(theirs[name])]
    for name in ("PromptType", "Confidence"):
        wanted = {one.name: one.value for one in theirs[name]}
        assert wanted.items() <= {one.name: one.value for one in getattr(base, name)}.items()
    assert theirs["BaseAdapter"].__abstractmethods__ == base.BaseAdapter.__abstractmethods__
    for name in theirs["BaseAdapter"].__abstractmethods__:
        wanted_parameters = inspect.signature(getattr(theirs["BaseAdapter"], name)).parameters
        ours_parameters = inspect.signature(getattr(base.BaseAdapter, name)).parameters
        assert list(wanted_parameters) == list(ours_parameters)
        assert {one.name: one.default for one in wanted_parameters.values()} == {
            one.name: one.default for one in ours_parameters.values()
        }


@example("adapter interface", 1)
async def test_the_eight_methods_do_what_their_descriptions_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLASBRIDGE_SECRET", "hidden")
    described = block("adapter interface", 1)
    adapter = specification.AdapterRegistry.get("no-such-tool")()
    with pytest.raises(base.AdapterStartError):
        await adapter.start_session(["no-such-program-anywhere"])
    code = (
        "import os; print('x' * 5000, 'ATLASBRIDGE_SECRET' in os.environ, os.environ['MORE'], flush=True); " + ANSWERED
    )
    session_id = await adapter.start_session([sys.executable, "-c", code], {"MORE": "given"})
    assert uuid.UUID(session_id).version == 4
    stream, seen = adapter.read_stream(), b""
    events: list[base.PromptEvent] = []
    while not events:
        chunk = await anext(stream)
        assert 1 <= len(chunk) <= 1024 and "(1–1024 bytes)" in described
        seen += chunk
        events = [one for one in [await adapter.detect_prompt(seen[-4096:])] if one is not None]
    (event,) = events
    assert b"False given" in seen and event.prompt_type == "yes_no"
    assert await adapter.detect_prompt(seen[-4096:]) is None, "never the same prompt twice"
    while not await adapter.await_input_state():
        await asyncio.sleep(0.05)
    snapshot = await adapter.snapshot_context()
    wanted = re.findall(r'^ +"(\w+)": \w', described, re.MULTILINE)
    assert len(wanted) == 8 and set(wanted) <= set(snapshot) and snapshot["session_id"] == session_id
    assert await adapter.healthcheck() is True
    reply = base.Reply(event.prompt_id, session_id, "y", "0" * 32, "cli:local", event.timestamp, "append")
    with pytest.raises(base.ReplayAttackError):
        await adapter.inject_reply(reply)
    reply = dataclasses.replace(reply, nonce=event.constraints["nonce"])
    await adapter.inject_reply(reply)
    while b"got y" not in seen:
        seen += await anext(stream)
    with pytest.raises(base.ReplayAttackError):
        await adapter.inject_reply(reply)
    await adapter.terminate_session(session_id)
    assert await adapter.healthcheck() is False
    with pytest.raises(base.AdapterInjectionError):
        await adapter.inject_reply(dataclasses.replace(reply, prompt_id=str(uuid.uuid4()), nonce="1" * 32))


@pytest.mark.parametrize(
    ("number", "policy", "values"), [(2, "append", "y 7 word"), (3, "none", "q x"), (4, "replace", r"\x1b \x03")]
)
@example("adapter interface", 2)
@example("adapter interface", 3)
@example("adapter interface", 4)
def test_the_newline_policies_write_the_documents_bytes(number: int, policy: str, values: str) -> None:
    for value in values.split():
        theirs = executed(block("adapter interface", number), value=value)["inject_bytes"]
        assert base.reply_bytes(value, policy) == theirs


@example("adapter interface", 5)
@example("architecture", 5)
def test_the_key_is_made_by_the_documents_function() -> None:
    theirs = executed(block("adapter interface", 5))["make_idempotency_key"]
    for _ in range(20):
        before = int(time.time()) // 5
        pair = (
            theirs("session", "Continue? (y/n)"),
            specification.make_idempotency_key("session", "Continue? (y/n)"),
        )
        if int(time.time()) // 5 == before:
            break
    assert pair[0] == pair[1] == hashlib.sha256(f"session:Continue? (y/n):{before}".encode()).hexdigest()


@example("adapter interface", 6)
@example("adapter interface", 7)
def test_as_many_keys_are_remembered_as_the_document_says() -> None:
    code = block("adapter interface", 6) + "def seen(event):\n" + textwrap.indent(block("adapter interface", 7), "    ")
    names = executed(code, log=type("Log", (), {"debug": staticmethod(lambda *words: None)}))
    event = type("Event", (), {"idempotency_key": "k"})
    names["seen"](event)
    names["seen"](event)
    assert len(names["_recent_idempotency_keys"]) == 1
    assert names["_IDEMPOTENCY_WINDOW_EVENTS"] == REMEMBERED_KEYS


DIALOGS = {
    8: (9, "yes_no"),
    10: (11, "yes_no"),
    12: (13, "yes_no"),
    14: (0, "multiple_choice"),
    15: (0, "confirm_enter"),
}


@pytest.mark.parametrize("number", DIALOGS)
@example("adapter interface", 8)
@example("adapter interface", 9)
@example("adapter interface", 10)
@example("adapter interface", 11)
@example("adapter interface", 12)
@example("adapter interface", 13)
@example("adapter interface", 14)
@example("adapter interface", 15)
def test_every_dialog_of_the_document_is_detected(number: int) -> None:
    pattern, kind = DIALOGS[number]
    text = block("adapter interface", number).rstrip("\n")
    if pattern:
        made: re.Pattern[str] = eval(block("adapter interface", pattern), {"re": re})
        assert made.search(text)
    play = Playbook(READING, "claude") >> text.replace("\n", "\r\n") + " " >> 1.0 << Raised(kind)
    if number == 14:
        assert [choice.label for choice in play.prompt.choices] == [
            "Apply changes",
            "View diff",
            "Skip this file",
            "Abort",
        ]


@example("adapter interface", 16)
@example("adapter interface", 17)
@example("adapter interface", 18)
@example("adapter interface", 19)
@example("adapter interface", 20)
def test_the_modules_of_adapters_run_as_they_are_written(tmp_path: Path) -> None:
    for number, name in ((16, "openai"), (19, "gemini")):
        code = block("adapter interface", number) + f"\nprint(AdapterRegistry.get({name!r}).__name__)\n"
        done = run([sys.executable, "-c", code], tmp_path, {"ATLASBRIDGE_HOME": str(tmp_path / "none")})
        assert done.returncode == 0 and done.stdout.strip().endswith("Adapter"), done.stderr
    patterns = executed("import re\n" + block("adapter interface", 20))["_GEMINI_YES_NO_PATTERNS"]
    assert patterns[0].search("Confirm action? [Y/n]")
    assert block("adapter interface", 17).startswith("src/atlasbridge/adapters/")
    tool = Path(block("adapter interface", 18).strip()).stem
    assert tool in specification.AdapterRegistry.list_supported()


@example("adapter interface", 21)
def test_a_scenario_file_runs_as_it_is_written(hub: HubProcess, tmp_path: Path) -> None:
    file = tmp_path / "claude_yes_no_file_overwrite.json"
    file.write_text(block("adapter interface", 21))
    done = run(hub.command("lab", "run", str(file)), environ=hub.environ)
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout + done.stderr


# ------------------------------------------------------------------ at-session


def example_in_python(*numbers: int, said: list[str], wrapped: bool = False, sleep_s: float = 0.5) -> dict[str, Any]:
    """The Rust of the document as Python; a fragment becomes the body of `main`."""
    code = python("".join(block("at-session", number) for number in numbers))
    if wrapped:
        code = "async def main():\n" + textwrap.indent(code, "    ")
    return executed(code, **names(said, sleep_s))


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Makes a program of that name, which is found first."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def make(name: str, code: str) -> Path:
        (tmp_path / name).write_text(f"#!/bin/sh\n{code}\n")
        (tmp_path / name).chmod(0o755)
        return tmp_path / name

    return make


@example("at-session", 3)
@example("at-session", 4)
@example("at-session", 5)
async def test_a_pty_is_spawned_used_and_cleaned_up_as_the_document_writes_it() -> None:
    said: list[str] = []
    made = example_in_python(3, 4, 5, said=said, wrapped=True)
    pools = capture(made)
    await made["main"]()
    assert said and said[0].startswith("Output: ")
    assert [(pool.active_count(), pool.available()) for pool in pools] == [(0, 10)]


async def until_empty(pool: Any) -> None:
    """Inside a loop a kill that is not awaited goes on beside it: the slot is free when the child is gone."""
    while pool.active_count():
        await asyncio.sleep(0.02)


def capture(made: dict[str, Any]) -> list[Any]:
    """The pools that an example makes."""
    pools: list[Any] = []

    def new(max_ptys: int) -> Any:
        pools.append(pty_pool.PtyPool.new(max_ptys))
        return pools[-1]

    made["PtyPool"] = types.SimpleNamespace(new=new)
    return pools


@example("at-session", 8)
async def test_the_example_of_a_shell_runs_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a-file-to-be-seen").touch()
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    await example_in_python(8, said=said, sleep_s=3.0)["main"]()
    assert len(said) == 1 and "a-file-to-be-seen" in said[0] and f"{tmp_path}\r\n" in said[0]


@example("at-session", 6)
@example("at-session", 7)
@example("at-session", 9)
async def test_the_example_of_a_cli_adapter_runs_as_it_is_written(
    program: Callable[[str, str], Path], tmp_path: Path
) -> None:
    """Only the folder of the example is another, because `/path/to/project` is nowhere."""
    program("claude", """echo "in $PWD: $*"; echo '{"type": "result", "is_error": false}'; sleep 60""")
    said: list[str] = []
    made = example_in_python(9, said=said)
    adapter = made["adapter_for"](made["CliType"].Claude)
    for name in re.findall(r"fn (\w+)\(", block("at-session", 6)):
        assert callable(getattr(adapter, name)), name
    assert "adapter_for" in block("at-session", 7)
    assert [made["adapter_for"](kind).binary_name() for kind in made["CliType"]] == [
        "claude",
        "codex",
        "gemini",
        "opencode",
    ]
    with pytest.raises(ValueError, match="nonesuch"):
        made["adapter_for"]("nonesuch")
    spawn = adapter.spawn
    made["adapter_for"] = lambda kind: adapter
    adapter.spawn = lambda pool, task, workdir: spawn(pool, task, str(tmp_path))
    pools = capture(made)
    await made["main"]()
    assert "Add error handling to the main function" in "".join(said) and f"in {tmp_path}" in "".join(said)
    assert said[-1] == "Task status: completed"
    await until_empty(pools[0])


@example("at-session", 10)
async def test_the_example_of_a_full_pool_runs_as_it_is_written() -> None:
    said: list[str] = []
    made = example_in_python(10, said=said)
    pools = capture(made)
    await made["main"]()
    assert said[:2] == ["Active: 2/2", "Pool full! Max capacity: 2"] and said[2].startswith("Spawned after release: ")
    await until_empty(pools[0])
    assert pools[0].available() == 2


@example("at-session", 11)
def test_the_example_of_a_new_size_runs_as_it_is_written(program: Callable[[str, str], Path], tmp_path: Path) -> None:
    seen, ready = tmp_path / "seen", tmp_path / "ready"
    program("vim", f"trap 'stty size > \"{seen}\"; exit' TERM; : > '{ready}'; while :; do sleep 0.05; done")
    made = example_in_python(11, said=[])
    pools = capture(made)
    slow = made["PtyPool"].new

    def spawn_and_wait(max_ptys: int) -> Any:
        pool = slow(max_ptys)
        spawn = pool.spawn

        def spawned(*words: Any) -> Any:
            handle = spawn(*words)
            wait_for(ready.exists, "the program's trap")
            return handle

        return types.SimpleNamespace(spawn=spawned, release=pool.release)

    made["PtyPool"] = types.SimpleNamespace(new=spawn_and_wait)
    made["main"]()
    assert seen.read_text().split() == ["40", "120"] and pools[0].active_count() == 0


@example("at-session", 12)
async def test_the_example_of_errors_runs_as_it_is_written(program: Callable[[str, str], Path]) -> None:
    said: list[str] = []
    retry = example_in_python(12, said=said, sleep_s=0.05)["spawn_with_retry"]
    pool = pty_pool.PtyPool.new(1)
    failed = await retry(pool)
    assert isinstance(failed.error, pty_pool.PtyError.SpawnFailed) and said[-1].startswith("Spawn failed: my-cli")
    program("my-cli", "sleep 60")
    holder = pool.spawn("cat", [], [])
    waiting = asyncio.create_task(retry(pool))
    while "Pool at capacity (1), waiting..." not in said:
        await asyncio.sleep(0.02)
    pool.kill(holder.id)
    assert (await waiting).value is None and said[-1].startswith("Spawned: ")
    pool.close()


@example("at-session", 1)
@example("at-session", 2)
@example("at-session", 13)
@example("at-session", 14)
@example("at-session", 15)
@example("at-session", 16)
def test_a_handle_has_the_parts_of_the_drawing_and_its_channels_do_what_the_loops_do() -> None:
    pool = pty_pool.PtyPool.new(1)
    handle = pool.spawn("sh", ["-c", "stty -echo; echo ready; exec cat"], [])
    ready = b""
    while not ready.endswith(b"ready\r\n"):
        ready += handle.reader.recv()
    for name in re.findall(r"│  - (\w+):", block("at-session", 1).partition("PtyHandle            │")[2]):
        assert hasattr(handle, name), name
    assert "reader.recv()" in block("at-session", 2) and "writer.send()" in block("at-session", 2)
    assert "writer_rx.recv()" in block("at-session", 14) and "Ok(0) => break" in block("at-session", 13)
    sent = b"x" * 3000 + b"\n"
    for number in range(20):
        handle.writer.send(b"%d " % number + sent)
    handle.writer.send(b"\x04")
    seen = b""
    while chunk := handle.reader.recv():
        assert len(chunk) <= 8192, "the reader reads 8 KB at most"
        seen += chunk
    assert seen.count(b"x") == 20 * 3000, "nothing is lost"
    numbers = [int(number) for number in re.findall(rb"^(\d+) x", seen, re.MULTILINE)]
    assert numbers == list(range(20)), "in the order in which they were sent"
    assert handle.reader.recv() == b"", "the end stays the end"
    assert handle.wait() == 0 and not handle.is_alive()
    with pytest.raises(pty_pool.PtyError.Io):
        handle.send(b"more")
    with pytest.raises(pty_pool.PtyError.SpawnFailed):  # what fails in one call leaves the pool as it was
        pool.release(handle.id)
        pool.spawn("no-such-program-anywhere", [], [])
    with pytest.raises(pty_pool.PtyError.HandleNotFound) as missing:
        pool.release(handle.id)
    assert missing.value.advice
    both = pool.spawn("sh", ["-c", "echo out; echo err >&2; sleep 60"], [])
    seen = b""
    while b"out" not in seen or b"err" not in seen:
        seen += both.read_all_available()
    assert both.is_alive()
    pool.kill(both.id)
    assert not both.is_alive()
    assert pool.available() == 1 and "at-session" in block("at-session", 16)
    pool.close()


def test_every_example_is_named_by_a_test() -> None:
    named = {pair for function in list(globals().values()) for pair in getattr(function, "examples", ())}
    assert set(BLOCKS) - named == set() and named - set(BLOCKS) == set()
