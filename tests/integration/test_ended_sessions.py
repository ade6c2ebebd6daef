"""What a session leaves behind when it has ended: exit status, duration, last output, answers; redacted and bounded."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from functools import partial

import pytest
from tests.support.fake_telegram import FakeTelegram, Person
from tests.support.hubs import NO_WEB, HubProcess, hub_process
from tests.support.sessions import wait_no_session
from tests.support.terminal import run_in
from tests.support.waiting import wait_for

from atlasbridge.core.screen.screen import Screen
from atlasbridge.core.store import ledger

ADA = 1001


def run(hub: HubProcess, *words: str, options: tuple[str, ...] = ()) -> None:
    with run_in(hub.home.root, *words, options=("--detach", "--name", "job", *options)) as start:
        assert start.wait_exit() == 0


def test_the_output_the_exit_status_and_the_answers_are_there_after_the_end() -> None:
    with hub_process() as hub:
        script = "seq 1 3000; echo key AKIAIOSFODNN7EXAMPLE; printf 'Deploy? (y/n) '; read a; echo took $a; exit 7"
        run(hub, "sh", "-c", script)
        wait_for(hub.is_asked)
        assert hub.cli("reply", "job", "y").returncode == 0
        wait_no_session(hub.home.root)
        wait_for(lambda: hub.ask("sessions", all=True)["sessions"][0]["exit_code"] == 7)
        shown = hub.cli("logs", "job")
        lines = shown.stdout.splitlines()
        assert lines[-1] == "took y" and "2000" in lines and len(lines) <= 2030
        assert "AKIAIOSFODNN7EXAMPLE" not in shown.stdout, "redacted as everything"
        assert "ended with exit status 7" in shown.stderr and '"Yes"' in shown.stderr and "Deploy?" in shown.stderr
        assert hub.cli("logs", "job", "-n", "1").stdout == "took y\n"
        listed = hub.cli("ps", "--all").stdout
        assert "7" in listed.splitlines()[-1].split() and "exit" in listed.splitlines()[0]
        attached = hub.cli("attach", "job")
        assert (
            attached.returncode == 1 and "took y" in attached.stdout and "ended with exit status 7" in attached.stderr
        )
        told = json.loads(hub.cli("logs", "job", "--json").stdout)
        assert told["session"]["exit_code"] == 7 and told["output"][-1] == "took y"


def test_the_last_words_of_an_ended_session_are_read_from_a_chat() -> None:
    with FakeTelegram() as telegram, hub_process(NO_WEB + telegram_config(telegram)) as hub:
        ada = telegram.person(ADA)
        run(hub, "sh", "-c", "echo the last words of it; sleep 0.5; exit 3")
        wait_no_session(hub.home.root)
        wait_for(lambda: hub.ask("sessions", all=True)["sessions"][0]["exit_code"] == 3)
        for words in ("/last", "/last job", "/screen job"):
            before = len(ada.sees())
            ada.write(words)
            telegram.wait_for(partial(tells, ada, before), words)
        ada.write("/last nonesuch")
        telegram.wait_for(lambda: "the last words" not in ada.last()["text"], "no other session is shown")


def tells(ada: Person, before: int) -> bool:
    said = [one["text"] for one in ada.sees()[before:]]
    return any("the last words of it" in text for text in said) and any("exit status 3" in text for text in said)


def telegram_config(telegram: FakeTelegram) -> str:
    return f'[channels.telegram]\nbot_token = "{telegram.token}"\nallowed_users = [{ADA}]\napi_url = "{telegram.url}"\n'


def test_a_session_that_is_not_to_be_kept_leaves_its_exit_status_and_no_output() -> None:
    with hub_process() as hub:
        run(hub, "sh", "-c", "echo private; sleep 0.5; exit 3", options=("--no-keep",))
        wait_no_session(hub.home.root)
        wait_for(lambda: hub.ask("sessions", all=True)["sessions"][0]["exit_code"] == 3)
        shown = hub.cli("logs", "job")
        assert "private" not in shown.stdout and "no output was kept" in shown.stderr


def test_a_tool_that_ends_at_once_has_its_exit_status_and_its_output() -> None:
    with hub_process() as hub:
        for status in (0, 3, 5):
            run(hub, "sh", "-c", f"echo short {status}; exit {status}")
        wait_no_session(hub.home.root)
        wait_for(lambda: [item["exit_code"] for item in hub.ask("sessions", all=True)["sessions"]] == [0, 3, 5])
        for item in hub.ask("sessions", all=True)["sessions"]:
            assert f"short {item['exit_code']}" in hub.cli("logs", item["session_id"]).stdout


def test_a_screen_remembers_two_thousand_lines_above_its_history_and_no_more() -> None:
    screen = Screen(24, 80)
    screen.feed("".join(f"line {number}\r\n" for number in range(5000)).encode())
    lines = screen.all_lines
    assert len(lines) == 2200 and lines[-1] == "line 4976" and lines == sorted(lines, key=lambda line: int(line[5:]))
    screen.feed(b"\x1b[3J")
    assert screen.all_lines == []


def test_the_bytes_on_disk_of_all_that_is_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE last_output (session_id TEXT PRIMARY KEY, at TEXT NOT NULL, body BLOB NOT NULL)")
    monkeypatch.setattr(ledger, "MOST_OUTPUT", 20_000)
    for number in range(30):
        lines = [os.urandom(20).hex() for _ in range(40)]
        ledger.keep_output(
            connection, f"session-{number}", f"2026-01-01T00:00:{number:02}", {"past": [], "lines": lines}
        )
    (size,) = connection.execute("SELECT sum(length(body)) FROM last_output").fetchone()
    assert 10_000 < size <= 20_000
    kept = dict(connection.execute("SELECT session_id, body FROM last_output"))
    assert "session-0" not in kept
    assert json.loads(zlib.decompress(kept["session-29"])) == {"past": [], "lines": lines}
    connection.close()
