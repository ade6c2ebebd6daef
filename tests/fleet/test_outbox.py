"""A hub's outbox: filled in the transaction of the change, emptied by the server's number, and only for members."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.ledgers import ask, open_ledger

from atlasbridge.core.clock import ManualClock
from atlasbridge.core.prompt.model import Answer, AnswerKind
from atlasbridge.core.store.ledger import Ledger


def kinds(ledger: Ledger) -> list[str]:
    return [kind for _, kind, _ in ledger.membership.pending(0, 1000)]


def test_nothing_is_collected_before_a_machine_belongs_to_a_fleet_server(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    ask(ledger)
    assert ledger.membership.backlog() == 0
    ledger.membership.begin("m1")
    assert kinds(ledger) == ["session", "prompt"]  # what lives now
    ledger.close()


def test_a_membership_that_was_begun_goes_on_and_another_begins_anew(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    first = ledger.membership.begin("m1")
    ask(ledger)
    ledger.close()
    ledger = open_ledger(tmp_path)
    assert ledger.membership.begin("m1") == first and kinds(ledger) == ["session", "prompt"]
    assert ledger.membership.begin("m2") != first
    ledger.membership.end()
    ask(ledger)
    assert ledger.membership.backlog() == 0
    events = [entry["event"] for entry in ledger.audit_entries()]
    assert events.count("FLEET_JOINED") == 2 and events.count("FLEET_LEFT") == 1
    ledger.close()


def test_a_prompt_that_moved_often_is_told_once_under_its_newest_number(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    ledger.membership.begin("m1")
    record = ask(ledger)
    ((_, _, _), (raised, _, _)) = ledger.membership.pending(0, 10)
    ledger.claim(record.prompt_id, record.session_id, None, Answer(AnswerKind.YES), "somebody")
    ledger.inject(record.prompt_id)
    ledger.resolve(record.prompt_id)
    ledger.membership.acknowledge(raised)  # the server had the older word: the newer one is still to be told
    ((newest, kind, name),) = ledger.membership.pending(0, 10)
    assert newest > raised and (kind, name) == ("prompt", record.prompt_id)
    ledger.membership.acknowledge(newest)
    assert ledger.membership.backlog() == 0
    ledger.close()


def test_numbers_are_never_used_twice(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    ledger.membership.begin("m1")
    ask(ledger)
    last = ledger.membership.pending(0, 10)[-1][0]
    ledger.membership.acknowledge(last)
    ledger.close()
    ledger = open_ledger(tmp_path)
    ledger.membership.begin("m1")
    ask(ledger)
    assert all(seq > last for seq, _, _ in ledger.membership.pending(0, 10))
    ledger.close()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(["ask", "answer", "expire", "send", "ack", "cut", "restart"]), max_size=40))
def test_whatever_is_cut_the_fleet_server_ends_with_the_newest_word_of_every_prompt(steps: list[str]) -> None:
    """The server keeps what comes under a higher number; frames and acknowledgements are lost, the hub starts again."""
    with TemporaryDirectory(prefix="ab-") as root:
        clock = ManualClock()
        ledger = Ledger.open(Path(root), clock, "boot")
        ledger.membership.begin("m1")
        fleet_server: dict[str, tuple[int, str]] = {}
        acked = sent = 0
        line: list[tuple[int, str, str]] = []

        def deliver() -> None:
            nonlocal acked
            for seq, name, state in line:
                if fleet_server.get(name, (0, ""))[0] < seq:
                    fleet_server[name] = (seq, state)
                acked = max(acked, seq)
            line.clear()

        def send() -> None:
            nonlocal sent
            for seq, kind, name in ledger.membership.pending(sent, 3):
                sent = seq
                record = ledger.prompt(name) if kind == "prompt" else None
                line.append((seq, name, record.state.value if record else ""))

        def cut() -> None:
            nonlocal sent
            line.clear()
            sent = acked
            ledger.membership.acknowledge(acked)

        for step in [*steps, "cut", *["send", "ack"] * 40]:
            match step:
                case "ask":
                    ask(ledger)
                case "answer":
                    for record in ledger.open_prompts()[:1]:
                        ledger.claim(record.prompt_id, record.session_id, None, Answer(AnswerKind.NO), "somebody")
                case "expire":
                    clock.advance(3600)
                    for record in ledger.open_prompts()[:1]:
                        ledger.expire(record.prompt_id, None)
                case "send":
                    send()
                case "ack":
                    deliver()
                    ledger.membership.acknowledge(acked)
                case "cut":
                    cut()
                case "restart":
                    ledger.close()
                    ledger = Ledger.open(Path(root), clock, "boot")
                    ledger.membership.begin("m1")
                    cut()
        assert ledger.membership.backlog() == 0
        said = {name: state for name, (_, state) in fleet_server.items() if ledger.prompt(name) is not None}
        opened = {"created", "routed", "awaiting_reply"}
        for record in ledger.history(limit=1000):
            told = said[record.prompt_id]
            assert told == record.state.value or {told, record.state.value} <= opened
        ledger.close()


def test_the_last_number_that_is_told_again_is_one_that_is_sent(tmp_path: Path) -> None:
    """A server closes what it was not told, once it has this number: one that is never sent would keep it waiting."""
    ledger = open_ledger(tmp_path)
    epoch = ledger.membership.begin("m1")
    ask(ledger)
    last = ledger.membership.tell_again(epoch, "", ())  # all of it was pending already
    assert last == ledger.membership.pending(0, 10)[-1][0]
    ledger.membership.acknowledge(last)
    ledger.close()
