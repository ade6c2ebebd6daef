"""What a machine tells of its prompts, as the chats read it: faithful where it makes sense, harmless where not."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.channels import prompts
from tests.figures.accuracy import spans

from atlasbridge.channels import matrix as matrix_looks
from atlasbridge.channels.ntfy import render_prompt as render_ntfy
from atlasbridge.channels.slack import blocks
from atlasbridge.channels.telegram import messages
from atlasbridge.channels.templates import needs_words, takes_keys, takes_words
from atlasbridge.core.clock import ManualClock
from atlasbridge.core.daemon.receipts import Receipts, describe_raised
from atlasbridge.core.policy.approval import may_be_granted
from atlasbridge.core.policy.escalation import PeopleBook, Person, Route
from atlasbridge.core.prompt.answer import decide_answer
from atlasbridge.core.prompt.codec import encode_keys
from atlasbridge.core.prompt.keys import Step
from atlasbridge.core.prompt.model import (
    Choice,
    Prompt,
    PromptRecord,
    PromptState,
    PromptType,
    Subject,
    SubjectKind,
    SubjectSource,
)
from atlasbridge.core.routing.router import ChatPlan
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import replace
from atlasbridge.fleet.server.chat_cache import Directory, chat_policy
from atlasbridge.fleet.server.chats import receipt_of, routes_for
from atlasbridge.fleet.server.lists import FleetPrompt, chat_id, nonce_of, read_asked, read_session
from atlasbridge.lab.replay import read_recording

CORPUS = Path(__file__).parents[1] / "corpus"
NOW = datetime.fromtimestamp(1_700_000_000, UTC)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
TOLD = (
    "type confidence excerpt screen choices constraints evidence safe_default question whole says subject"
    " decided_by decided_value decided_from decided_at agreed keys"
)
NAMES = st.sampled_from(TOLD.split())
CHOICES = st.lists(
    st.fixed_dictionaries({"value": JSON, "label": JSON}, optional={"detail": JSON, "refuses": JSON, "default": JSON}),
    max_size=12,
)
CONSTRAINTS = st.dictionaries(
    st.sampled_from(["quorum", "multi_select", "max_length", "min_choice", "idle", "secret", "allows_other"]), JSON
)


def row(body: dict[str, Any], **more: Any) -> dict[str, Any]:
    ids = {"machine_id": "m1", "prompt_id": "0123abcd-1111-4111-8111-111111111111", "session_id": "s1", "seq": 1}
    times = {"raised_at": NOW, "expires_at": NOW, "last_key_at": None}
    return {**ids, **times, "state": "awaiting_reply", "body": body, "folder": "", "machine": "box", **more}


def read(body: dict[str, Any], **more: Any) -> FleetPrompt:
    return read_asked(row(body, **more), "secret", ManualClock(), "https://fleet.example.org")


def session(body: dict[str, Any]) -> SessionRecord:
    return read_session({"machine_id": "m1", "session_id": "s1", "state": "active", "machine": "box", "body": body})


class Known:
    def name_of(self, identity: str) -> str:
        return ""

    def session(self, session_id: str) -> SessionRecord | None:
        return session({"label": "app"})

    def audit_head(self) -> tuple[int, str]:
        return 0, ""


RECEIPTS = Receipts(Known())


@given(st.dictionaries(NAMES, JSON | CHOICES, max_size=6), CONSTRAINTS, JSON)
def test_no_nonsense_of_a_machine_stops_a_channel(body: dict[str, Any], constraints: dict[str, Any], tool: Any) -> None:
    for given_constraints in (body.get("constraints"), constraints):
        asked = read({**body, "constraints": given_constraints})
        of = session({"tool": tool, "label": tool, "cwd": tool, "command": tool, "started_at": tool})
        messages.render(messages.question(asked.record, of, "server"))
        blocks.render(blocks.question(asked.record, of, "server"))
        matrix_looks.render(matrix_looks.question(asked.record, of, "server"))
        render_ntfy(asked.record, of, "server", True, True)
        for state in ("resolved", "withdrawn", "gone", "expired", "what?"):
            receipt_of(read(body, state=state), RECEIPTS)


def test_a_receipt_of_the_server_names_the_timer() -> None:
    body = {"type": "yes_no", "safe_default": "n", "decided_by": "auto:timeout", "decided_value": "n"}
    typed, taken = (receipt_of(read(body, state=state), RECEIPTS) for state in ("injected", "resolved"))
    assert (typed.stage, typed.sentence) == (
        "default_typed",
        'Nobody answered in time: a timer sent the safe default "n" to app.',
    )
    assert taken.sentence == 'Nobody answered in time; the tool took the timer\'s safe default "n".'
    by_ada = receipt_of(read({**body, "decided_by": "ada"}, state="resolved"), RECEIPTS)
    assert by_ada.sentence == 'The tool took "n", answered by ada.'


def test_every_prompt_comes_out_as_it_went_in() -> None:
    known = [value for value in vars(prompts).values() if isinstance(value, Prompt)]
    assert len(known) > 5
    for prompt in known:
        record = PromptRecord("p", "s", prompt, PromptState.AWAITING_REPLY, "n", "", "", 0.0)
        told = {**describe_raised(record, None), "keys": encode_keys(prompt)}
        again = read(told).record.prompt.to_json()
        assert again == {**prompt.to_json(), "constraints": again["constraints"]}
        assert {k: v for k, v in again["constraints"].items() if v and k != "card"} == {
            k: v for k, v in prompt.to_json()["constraints"].items() if v and k in again["constraints"]
        }


RECORDED = [
    ("claude", "2.1.325/ask"),  # a choice that needs words, and an instruction of several lines
    ("claude", "2.1.325/plan"),
    ("aider", "0.86.2/git"),
    ("cn", "1.5.47/ask"),
]


@pytest.mark.parametrize(("tool", "case"), RECORDED, ids=[f"{tool}-{case}" for tool, case in RECORDED])
def test_people_of_a_fleet_are_offered_and_understood_as_at_the_machine(tool: str, case: str) -> None:
    opened = spans(read_recording(CORPUS / tool / case / "session.cast"), tool)
    assert opened
    for _, _, prompt in opened:
        told = json.loads(json.dumps({**prompt.to_json(), "keys": encode_keys(prompt)}))
        there = read(told).record.prompt
        ways = [*(choice.value for choice in prompt.choices), "y", "n", "enter", "esc", "default", "in other words"]
        for value in [*ways, "two\nlines"]:
            for as_text in (False, True):
                own = decide_answer(prompt, value, as_text=as_text)
                assert decide_answer(there, value, as_text=as_text) == own, (value, as_text)
        offered = [
            (takes_words(one), takes_keys(one), one.multiline, [needs_words(one, each.value) for each in one.choices])
            for one in (prompt, there)
        ]
        assert offered[0] == offered[1]


def test_a_prompt_is_opened_on_the_fleets_page_and_allowed_for_a_while_nowhere_but_at_its_machine() -> None:
    subject = Subject(SubjectKind.COMMAND, "make", "/srv", SubjectSource.HOOK, complete=True, shown="make")
    yes, no = Choice("1", "Yes", (Step(b"1"),)), Choice("2", "No", (Step(b"2"),), refuses=True)
    prompt = Prompt(PromptType.TYPE_MULTIPLE_CHOICE, 0.9, "Run make?", choices=(yes, no), subject=subject)
    assert may_be_granted(prompt)
    proof = {"kind": "passkey", "rule": "signed", "page": "https://box.example/#prompt/1"}
    constraints = {"proof": proof, "card": "https://box.example/#prompt/1"}
    told = {**replace(prompt, constraints=constraints).to_json(), "keys": encode_keys(prompt)}
    asked = read(told)
    page = f"https://fleet.example.org/#prompt/{asked.key[0]}.{asked.key[1]}"
    assert asked.record.prompt.constraints["card"] == page
    assert asked.record.prompt.constraints["proof"] == {**proof, "page": page}
    unsigned = read({**told, "constraints": {}}).record.prompt
    assert unsigned.subject is not None and unsigned.subject.shown == "make" and not may_be_granted(unsigned)


def test_an_id_begins_as_at_its_machine_and_is_never_another_machines() -> None:
    own = "0123abcd-1111-4111-8111-111111111111"
    mine, theirs = chat_id(("m1", own)), chat_id(("m2", own))
    assert mine != theirs and mine[:8] == theirs[:8] == "0123abcd" and len(mine) == len(own)
    assert chat_id(("m1", "../../x"))[:8] != "../../x"
    assert nonce_of("a", ("m1", own)) != nonce_of("b", ("m1", own)) != nonce_of("b", ("m2", own))


def test_a_prompt_goes_only_where_nobody_reads_who_may_not() -> None:
    directory = Directory(PeopleBook.of(Person("ada", ("chat:1", "room:a")), Person("bob", ("chat:2", "room:b"))))
    policy = chat_policy(ChatPlan(), directory)

    def routes(*readers: str) -> tuple[Route, ...]:
        asked = replace(read({}), readers=frozenset(readers))
        return routes_for(asked, session({}), {"chat": True, "room": False}, policy)

    assert routes() == ()
    assert routes("ada") == (Route("chat", True, ("ada",)),)
    assert [route.name for route in routes("ada", "bob")] == ["chat", "room"]
