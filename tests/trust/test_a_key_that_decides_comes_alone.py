"""A terminal sends more than keys: no reply of its own, no paste and no burst is ever taken for a decision."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from tests.cli.test_approvals_keys import LETTERS, MENU, prompt
from tests.integration.test_approvals import let_pass, watch
from tests.support.fake_host import YES_NO, FakeHost
from tests.support.hubs import hub_process
from tests.support.terminal_replies import pieces, random_reply
from tests.support.waiting import wait_for

from atlasbridge.cli.approvals_screen import ARMING_S, decide_key
from atlasbridge.cli.full_screen import QUIET_AFTER_S, SILENCE_S, Key, KeyReader

PROMPTS: tuple[dict[str, Any], ...] = (
    *(prompt("yes_no", safe_default="n"), MENU, LETTERS, prompt("confirm_enter"), prompt("unknown")),
)
ROUNDS = int(os.environ.get("ATLASBRIDGE_TEST_REPLIES", "20000"))


def decides(key: Key) -> bool:
    return key.alone and any(decide_key(key.text, shown).do == "answer" for shown in PROMPTS)


def after_a_while(reader: KeyReader, now: float) -> list[Key]:
    """Whatever the reader says until it has nothing more to say."""
    keys: list[Key] = []
    while (wait_s := reader.wait_s(now)) is not None:
        now += wait_s + 0.001
        keys += reader.due(now)
    return keys


def test_no_reply_of_a_terminal_is_a_decision_however_it_is_cut() -> None:
    chance = random.Random(40)
    reader, now, decided = KeyReader(), 0.0, []
    for _ in range(ROUNDS):
        sent = random_reply(chance)
        now += chance.choice((0.001, 0.2, 5.0))
        said = reader.due(now)
        for piece in pieces(sent, chance):
            said += reader.feed(piece, now)
            now += chance.choice((0.0, 0.002, 0.02, 0.08))
        if chance.random() < 0.5:
            said += after_a_while(reader, now)
            now += 3 * SILENCE_S
        if any(decides(key) for key in said):
            decided.append(sent)
    assert decided == []


def test_any_bytes_leave_the_reader_in_order_and_a_key_afterwards_is_read() -> None:
    chance = random.Random(41)
    for _ in range(2000):
        reader = KeyReader()
        reader.feed(chance.randbytes(chance.randrange(1, 40)), 0.0)
        after_a_while(reader, 0.0)
        reader.feed(b"j", 60.0)
        reader.due(90.0)
        reader.feed(b"y", 100.0)
        assert reader.due(101.0) == [Key("y", alone=True)]


def test_a_key_is_alone_if_nothing_comes_before_or_after_it() -> None:
    reader = KeyReader()
    assert reader.feed(b"y", 10.0) == [] and reader.wait_s(10.0) == pytest.approx(QUIET_AFTER_S)
    assert reader.due(10.2) == [Key("y", alone=True)]
    assert reader.feed(b"y", 20.0) == []
    assert reader.feed(b"\x1b]11;rgb:0/0/0\x07", 20.05) == [Key("y")], "something followed it"
    assert reader.feed(b"1", 20.06) == [Key("1")], "something came just before it"
    assert reader.feed(b"yy", 30.0) == [Key("y"), Key("y")]
    assert reader.feed(b"\x1b[200~y\x1b[201~", 40.0) == [Key("y", pasted=True)]


def test_a_string_that_never_ends_lets_the_keyboard_go_after_a_moment() -> None:
    reader = KeyReader()
    assert reader.feed(b"\x1b]", 0.0) == [], "Alt and a bracket"
    assert reader.due(SILENCE_S + 0.1) == []
    assert reader.feed(b"y", 5.0) == [Key("y")], "the rest of a slow reply may look like that"
    assert reader.feed(b"y", 6.0) == [] and reader.due(6.2) == [Key("y", alone=True)]


@pytest.mark.parametrize(
    ("sent", "key"),
    [
        (b"\x1b[121u", "y"),
        (b"\x1b[121;1u", "y"),
        (b"\x1b[121;1:1u", "y"),
        (b"\x1b[121:89;2u", "Y"),
        (b"\x1b[99;5u", "\x03"),
        (b"\x1b[13u", "\r"),
        (b"\x1b[27u", "\x1b"),
        (b"\x1b[121;3u", "\x1by"),
        (b"\x1b[27;5;99~", "\x03"),
        (b"\x1b[A", "\x1b[A"),
        (b"\x9bA", "\x1b[A"),
        (b"\xc2\x9bA", "\x1b[A"),
        (b"\x1bOA", "\x1bOA"),
        (b"\x1b[5~", "\x1b[5~"),
        ("é".encode(), "é"),
        ("漢".encode(), "漢"),
    ],
)
def test_keys_of_every_protocol_are_read_in_one_piece_and_byte_by_byte(sent: bytes, key: str) -> None:
    reader = KeyReader()
    assert reader.feed(sent, 10.0) + after_a_while(reader, 10.0) == [Key(key, alone=True)]
    slow = KeyReader()
    said = [one for place in range(len(sent)) for one in slow.feed(sent[place : place + 1], 10.0 + place / 1000)]
    assert [one.text for one in said + after_a_while(slow, 11.0)] == [key]


@pytest.mark.parametrize(
    "sent", [b"\x1b[121;1:3u", b"\x1b[?1u", b"\x1b[I", b"\x1b[M y1", b"\x1b[<0;1;1M", b"\x1b[1;1R"]
)
def test_what_is_let_go_and_what_is_reported_is_no_key(sent: bytes) -> None:
    reader = KeyReader()
    assert reader.feed(sent, 10.0) + after_a_while(reader, 10.0) == []


def test_a_reply_on_a_real_terminal_answers_nothing_and_a_key_does() -> None:
    with hub_process() as hub, FakeHost(hub.home) as host:
        prompt_id = host.raise_prompt(YES_NO)
        wait_for(hub.is_asked)
        with watch(hub) as terminal:
            terminal.wait_for("Continue? (y/n)")
            let_pass(terminal, ARMING_S)
            for reply in ("\x1b]lyes y\x1b\\", "\x1bP1$ry\x1b\\", "\x1b_Gi=1;y\x1b\\", "\x1b[M yy"):
                terminal.type(reply)
                let_pass(terminal, 0.3)
            assert hub.is_asked() and "answering" not in terminal.text()
            terminal.type("\x1b]l")  # and in two reads
            let_pass(terminal, 0.05)
            terminal.type("y\x07")
            let_pass(terminal, 0.3)
            (still,) = hub.ask("prompts")["prompts"]
            assert still["prompt_id"] == prompt_id
            let_pass(terminal, SILENCE_S)
            terminal.type("n")
            assert host.answer_typing()["answer"]["kind"] == "no"
            terminal.type("q")
