"""The chain as pure text: every way to change it is found, and named by its number."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlasbridge.core.audit.chain import START, Fault, Head, check_chain, parse_entry, render_entry, seal_entry
from atlasbridge.core.audit.events import EVENT_OF_MOVE, AuditEvent
from atlasbridge.core.prompt.model import PromptMoved

SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20)
FIELDS = st.dictionaries(st.sampled_from(["value", "session_id", "reason", "x"]), SCALARS, max_size=3)


def build(entries: list[dict[str, Any]]) -> tuple[list[str], Head]:
    head, lines = START, []
    for number, fields in enumerate(entries):
        line, head = seal_entry(head, f"2026-01-01T00:00:{number % 60:02d}.000000+00:00", "NOTE", fields)
        lines.append(line)
    return lines, head


LINES, HEAD = build([{"value": str(number)} for number in range(6)])


def test_an_entry_has_the_fields_of_the_specification() -> None:
    entry = json.loads(LINES[0])
    assert list(entry)[:3] == ["seq", "ts", "event"] and list(entry)[-2:] == ["prev_hash", "hash"]
    assert (entry["seq"], entry["prev_hash"]) == (1, "genesis")
    rest = json.dumps({k: v for k, v in entry.items() if k != "hash"}, separators=(",", ":"))
    assert entry["hash"] == "sha256:" + hashlib.sha256(rest.encode()).hexdigest()
    assert json.loads(LINES[1])["prev_hash"] == entry["hash"]


def test_an_entry_cannot_overwrite_the_fields_of_the_chain() -> None:
    with pytest.raises(ValueError, match="seq"):
        seal_entry(START, "t", "NOTE", {"seq": 9})


def test_no_terminal_sequence_or_foreign_letter_leaves_an_entry_raw() -> None:
    line, _ = seal_entry(START, "t", "NOTE", {"value": "\x1b[31m\u202e\ud800é\n"})
    assert line.isascii() and line.isprintable()


def test_a_whole_chain_leads_to_its_head() -> None:
    assert check_chain(LINES) == HEAD
    assert check_chain([]) == START


@pytest.mark.parametrize("at", range(6))
def test_a_changed_entry_is_named(at: int) -> None:
    changed = [*LINES]
    changed[at] = changed[at].replace('"NOTE"', '"FORGED"')
    assert check_chain(changed) == Fault(at + 1, "was changed: its hash does not match")


@pytest.mark.parametrize("at", range(5))
def test_a_deleted_entry_is_named(at: int) -> None:
    found = check_chain(LINES[:at] + LINES[at + 1 :])
    assert isinstance(found, Fault) and found.seq == at + 1


@pytest.mark.parametrize("at", range(5))
def test_two_entries_in_the_wrong_order_are_named(at: int) -> None:
    moved = [*LINES]
    moved[at], moved[at + 1] = moved[at + 1], moved[at]
    found = check_chain(moved)
    assert isinstance(found, Fault) and found.seq == at + 1


@pytest.mark.parametrize("at", range(6))
def test_an_inserted_entry_is_named(at: int) -> None:
    found = check_chain([*LINES[:at], LINES[3], *LINES[at:]])
    assert isinstance(found, Fault) and found.seq in (at + 1, at + 2)


def test_a_chain_rewritten_from_the_middle_does_not_lead_to_the_head() -> None:
    rewritten, _ = build([{"value": "0"}, {"value": "forged"}, *({"value": str(n)} for n in range(2, 6))])
    end = check_chain(rewritten)
    assert isinstance(end, Head) and end.entries == HEAD.entries and end.hash != HEAD.hash


@pytest.mark.parametrize("line", ["", "{", "[]", "null", '{"seq":1}', LINES[0] + " ", " " + LINES[0], "\x00" * 20])
def test_what_is_not_exactly_an_entry_is_refused(line: str) -> None:
    assert isinstance(check_chain([line]), Fault)


@given(st.lists(FIELDS, min_size=1, max_size=8), st.data())
def test_no_single_character_can_be_changed_unseen(entries: list[dict[str, Any]], data: st.DataObject) -> None:
    lines, head = build(entries)
    assert check_chain(lines) == head
    at = data.draw(st.integers(0, len(lines) - 1))
    spot = data.draw(st.integers(0, len(lines[at]) - 1))
    letter = data.draw(st.characters(min_codepoint=32, max_codepoint=126))
    forged = lines[at][:spot] + letter + lines[at][spot + 1 :]
    found = check_chain([*lines[:at], forged, *lines[at + 1 :]])
    if forged == lines[at]:
        assert found == head
    else:
        assert isinstance(found, Fault) and found.seq in (at + 1, at + 2)


@given(st.text(max_size=200))
def test_parsing_never_raises(text: str) -> None:
    assert parse_entry(text) is None or isinstance(parse_entry(text), dict)


def test_every_move_of_a_prompt_has_its_event_and_the_specified_names_are_there() -> None:
    assert set(EVENT_OF_MOVE) == set(PromptMoved)
    specified = "SESSION_START PROMPT_DETECTED PROMPT_ROUTED REPLY_RECEIVED REPLY_INJECTED PROMPT_EXPIRED"
    assert {*specified.split(), "PROMPT_CANCELED", "SESSION_END"} <= {event.value for event in AuditEvent}


def test_the_lines_of_the_reference_page_check_a_log_without_atlasbridge(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "audit-log.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    head, lines = START, []
    for number in range(30):
        said = {"text": "ü\x1b", "a": 1}
        line, head = seal_entry(head, f"2026-02-21T14:30:{number:02d}+00:00", "PROMPT_DETECTED", said)
        lines.append(line)

    def check(written: list[str]) -> tuple[int, str]:
        log = tmp_path / "audit.log"
        log.write_text("".join(f"{line}\n" for line in written))
        command = [sys.executable, "-I", "-W", "ignore", "-c", code, str(log)]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, (done.stdout + done.stderr).strip()

    assert check(lines) == (0, f"whole: {head.hash}")
    assert check([*lines[:4], lines[4].replace("DETECTED", "RESOLVED"), *lines[5:]]) == (1, "entry 5 was changed")
    assert check([*lines[:4], *lines[5:]]) == (1, "entry 5 does not follow the one before it")


def test_an_entry_of_an_earlier_version_still_verifies() -> None:
    """They were hashed with their keys sorted; the chain goes on after them."""
    first = {"seq": 1, "ts": "2026-02-21T14:30:00+00:00", "event": "SESSION_STARTED"}
    fields = {**first, "tool": "x", "prev_hash": "genesis"}
    old = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    line = render_entry({**fields, "hash": "sha256:" + hashlib.sha256(old.encode()).hexdigest()})
    head = check_chain([line])
    assert isinstance(head, Head) and head.entries == 1
    following, _ = seal_entry(head, "2026-02-21T14:30:01+00:00", "SESSION_ENDED", {})
    assert isinstance(check_chain([line, following]), Head)
    assert isinstance(check_chain([line.replace('"x"', '"y"'), following]), Fault)
