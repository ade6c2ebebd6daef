"""What a key means in `approvals`, and that it never answers a prompt one was not looking at."""

from __future__ import annotations

from typing import Any

import pytest

from atlasbridge.cli.approvals_screen import (
    ARMING_S,
    MOVED_S,
    Intention,
    ViewState,
    decide_key,
    paint,
    render_frame,
    same_meaning,
)
from atlasbridge.cli.columns import cells
from atlasbridge.cli.full_screen import Key, KeyReader
from atlasbridge.core.values import replace


def prompt(kind: str, prompt_id: str = "a" * 36, **fields: Any) -> dict[str, Any]:
    return {
        "prompt_id": prompt_id,
        "session_id": "5" * 36,
        "type": kind,
        "tool": "bash",
        "label": "",
        "cwd": "/somewhere",
        "confidence": "high",
        "excerpt": "Go on?\x1b[2J",
        "screen": "",
        "created_at": "",
        "choices": [],
        "constraints": {"secret": False},
        "safe_default": "",
        **fields,
    }


def drawn(state: ViewState, rows: int = 24, cols: int = 80) -> ViewState:
    return state.drawn(render_frame(state, rows, cols).shown)


def text_of(state: ViewState, rows: int = 24, cols: int = 80) -> str:
    return "\n".join(line.text for line in render_frame(state, rows, cols).lines)


def many(count: int) -> list[dict[str, Any]]:
    return [prompt("yes_no", f"{n:08}" + "-" * 28, label=f"job-{n}", excerpt=f"Question {n}?") for n in range(count)]


MENU = prompt("multiple_choice", choices=[{"value": "1", "label": "Yes"}, {"value": "2", "label": "No"}])
LETTERS = prompt("multiple_choice", choices=[{"value": "d", "label": "Delete"}, {"value": "a", "label": "Always"}])
LONG_MENU = prompt("multiple_choice", choices=[{"value": str(n), "label": f"No. {n}"} for n in range(1, 13)])
SECRET = prompt("free_text", constraints={"secret": True})
BOXES = {**MENU, "constraints": {"multi_select": True}}


@pytest.mark.parametrize(
    ("key", "shown", "meaning"),
    [
        ("q", None, Intention("quit")),
        ("\x1b[A", None, Intention("up")),
        ("y", None, Intention("")),
        ("y", prompt("yes_no"), Intention("answer", "y")),
        ("w", prompt("yes_no"), Intention("")),
        ("y", MENU, Intention("")),
        ("2", MENU, Intention("answer", "2")),
        ("3", MENU, Intention("")),
        ("1", LONG_MENU, Intention("choose", "1")),
        ("1", BOXES, Intention("choose", "1")),
        ("\r", MENU, Intention("choose")),
        ("d", {**LETTERS, "safe_default": "n"}, Intention("answer", "d")),
        ("a", LETTERS, Intention("answer", "a")),
        ("a", MENU, Intention("attach")),
        ("\r", prompt("confirm_enter"), Intention("answer", "enter")),
        ("\r", prompt("yes_no"), Intention("")),
        ("\r", prompt("free_text"), Intention("text")),
        ("d", prompt("yes_no"), Intention("")),
        ("d", prompt("yes_no", safe_default="n"), Intention("answer", "default")),
        ("t", prompt("yes_no"), Intention("text")),
        ("t", prompt("free_text"), Intention("text", "t")),
        ("q", prompt("free_text"), Intention("text", "q")),
        ("/", prompt("free_text"), Intention("text", "/")),
        (":", prompt("free_text"), Intention("text", ":")),
        (" ", SECRET, Intention("text", " ")),
        ("é", SECRET, Intention("text", "é")),
        ("y", {**SECRET, "type": "yes_no"}, Intention("text", "y")),
        ("\x01", prompt("free_text"), Intention("attach")),
        ("\x18", prompt("free_text"), Intention("leave")),
        ("\x18", MENU, Intention("leave")),
        ("x", MENU, Intention("leave")),
        ("c", MENU, Intention("")),
    ],
)
def test_a_key_means_only_what_the_prompt_offers(key: str, shown: dict[str, Any], meaning: Intention) -> None:
    assert decide_key(key, shown) == meaning


def test_keys_are_cut_right_whatever_the_chunks_are() -> None:
    data = "jé\x1b[B\x1b[6~\x1bOAy\x1b[200~y\rn\x1b[201~q".encode()
    whole = KeyReader().feed(data, 0.0)
    assert [key.text for key in whole] == ["j", "é", "\x1b[B", "\x1b[6~", "\x1bOA", "y", "y\rn", "q"]
    assert [key for key in whole if key.pasted] == [Key("y\rn", pasted=True)]
    reader = KeyReader()
    pasted = [
        key
        for place in range(0, len(data), 7)
        for key in reader.feed(data[place : place + 7], place / 1000)
        if key.pasted
    ]
    assert pasted == [Key("y\rn", pasted=True)]


def test_the_selection_stays_with_its_prompt_when_the_list_changes() -> None:
    first, second = prompt("yes_no", "a" * 36), prompt("yes_no", "b" * 36)
    state = ViewState().refreshed([first, second], now=10.0).moved(1, now=11.0)
    assert state.selected == "b" * 36
    assert state.refreshed([second], now=12.0).selected == "b" * 36


def test_what_stands_at_the_place_of_an_answered_prompt_is_selected_next() -> None:
    prompts = many(5)
    state = ViewState().refreshed(prompts, now=0.0).moved(1, now=1.0).moved(1, now=1.0)
    assert state.refreshed([*prompts[:2], *prompts[3:]], now=2.0).selected == prompts[3]["prompt_id"]
    last = state.moved(1, now=1.0).moved(1, now=1.0)
    assert last.refreshed(prompts[:4], now=2.0).selected == prompts[3]["prompt_id"]


def test_a_prompt_that_took_the_place_of_another_is_not_answered_at_once_and_says_so() -> None:
    state = drawn(ViewState().refreshed([prompt("yes_no", "a" * 36)], now=0.0))
    assert state.hindrance(ARMING_S + 0.1) == ""
    state = drawn(state.refreshed([prompt("yes_no", "b" * 36)], now=100.0))
    assert "too early" in state.hindrance(100.1) and not state.hindrance(100.1 + ARMING_S)


def test_a_key_behind_an_arrow_in_one_burst_is_too_early() -> None:
    state = drawn(ViewState().refreshed(many(3), now=0.0))
    state = drawn(state.moved(1, now=50.0))
    assert "too early" in state.hindrance(50.01) and not state.hindrance(50.01 + MOVED_S)


@pytest.mark.parametrize(("rows", "cols"), [(24, 80), (10, 40), (6, 30), (4, 20), (50, 200)])
@pytest.mark.parametrize("place", [0, 5, 17])
def test_the_selected_prompt_is_always_on_the_screen(rows: int, cols: int, place: int) -> None:
    state = ViewState().refreshed(many(18), now=0.0)
    for _ in range(place):
        state = state.moved(1, now=1.0)
    frame = render_frame(state, rows, cols)
    assert len(frame.lines) == rows and all(cells(line.text) <= cols for line in frame.lines)
    chosen = [line.text for line in frame.lines if line.text.startswith("▶")]
    assert len(chosen) == 1 and f"job-{place}" in chosen[0]
    assert f"Question {place}?" in [line.text for line in frame.lines], (
        "what is asked stands whole on a line of its own"
    )


def test_what_does_not_fit_is_not_answered_before_it_was_read() -> None:
    subject = {"kind": "command", "text": "\n".join(f"rm -rf /srv/{n}" for n in range(40)), "target": ""}
    state = drawn(ViewState().refreshed([prompt("yes_no", subject=subject)], now=0.0))
    assert "more to read" in state.hindrance(9.0)
    seen = set(text_of(state).split("\n"))
    for _ in range(10):
        state = drawn(state.scrolled(1))
        seen |= set(text_of(state).split("\n"))
    assert {f"rm -rf /srv/{n}" for n in range(40)} <= seen
    assert state.hindrance(9.0) == ""
    assert "more to read" in drawn(state, 24, 60).hindrance(9.0), "another width is another text to read"


LOG = [f"compiling module {n} ... ok" for n in range(30)]
BUILD = prompt(
    "yes_no", question="\n".join([*LOG, "Install 30 modules? [y/N]"]), context_rows=30, whole=False, label="build"
)


@pytest.mark.parametrize(("rows", "cols"), [(24, 80), (15, 40), (50, 200)])
def test_the_view_begins_at_the_line_that_asks_and_the_log_is_above_it(rows: int, cols: int) -> None:
    state = drawn(ViewState().refreshed([BUILD], now=0.0), rows, cols)
    shown = text_of(state, rows, cols).split("\n")
    assert "Install 30 modules? [y/N]" in shown
    row = next(line for line in shown if line.startswith("▶"))
    assert "Install" in row and "compiling" not in row
    assert state.hindrance(9.0) == "", "the log need not be read"
    seen = set(shown)
    for _ in range(12):
        state = drawn(state.scrolled(-1), rows, cols)
        seen |= set(text_of(state, rows, cols).split("\n"))
    assert set(LOG) <= seen and state.hindrance(9.0) == ""


def test_a_question_that_is_longer_than_the_window_is_read_to_its_end_below_its_log() -> None:
    asks = "\n".join(f"may I remove /srv/{n}?" for n in range(40))
    state = drawn(ViewState().refreshed([{**BUILD, "question": "\n".join([*LOG, asks])}], now=0.0))
    assert "may I remove /srv/0?" in text_of(state) and "more to read" in state.hindrance(9.0)
    for _ in range(4):
        state = drawn(state.scrolled(1))
    assert state.hindrance(9.0) == ""


def test_a_window_without_room_for_the_question_answers_nothing() -> None:
    state = ViewState().refreshed(many(3), now=0.0)
    assert "too small" in drawn(state, 2, 40).hindrance(9.0)
    assert drawn(state, 12, 40).hindrance(9.0) == ""


def test_the_whole_subject_and_every_choice_stand_in_the_preview() -> None:
    subject = {"kind": "command", "text": "curl https://example.org/" + "x" * 100 + " | sh", "target": ""}
    shown = text_of(ViewState().refreshed([{**MENU, "subject": subject, "label": "web-api"}], now=0.0))
    assert subject["text"] in shown.replace("\n", "")
    assert "1  Yes" in shown and "2  No" in shown and "web-api" in shown and "/somewhere" in shown


def test_a_search_leaves_what_matches_and_keys_go_to_what_is_shown() -> None:
    state = replace(ViewState().refreshed(many(18), now=0.0), search="job-11").settled(5.0)
    assert [item["label"] for item in state.listed] == ["job-11"]
    assert state.current is not None and state.current["label"] == "job-11"
    assert "too early" in drawn(state).hindrance(5.1)
    assert "job-3" not in text_of(state)


def test_several_are_answered_only_after_all_of_them_were_shown() -> None:
    state = ViewState().refreshed(many(3), now=0.0).marking().moved(1, now=1.0).marking()
    assert len(state.marked) == 2
    shown = text_of(state.review("y", now=2.0))
    assert "Question 0?" in shown and "Question 1?" in shown and "Question 2?" not in shown
    gone = state.review("y", now=2.0).refreshed(many(1), now=3.0)
    assert gone.reviewing == "" and "look again" in gone.message


def test_an_answer_for_several_must_mean_the_same_to_each() -> None:
    other = prompt("multiple_choice", "b" * 36, choices=[{"value": "1", "label": "Delete it all"}])
    assert same_meaning((MENU, {**MENU, "prompt_id": "c" * 36}), "1")
    assert not same_meaning((MENU, other), "1")
    assert not same_meaning((MENU, prompt("yes_no")), "1")


def test_a_secret_cannot_be_marked_and_a_line_for_a_question_that_left_is_dropped() -> None:
    from atlasbridge.cli.approvals_screen import Editing

    secret = prompt("free_text", constraints={"secret": True})
    state = ViewState().refreshed([secret], now=0.0).marking()
    assert state.marked == () and "separately" in state.message
    typing = replace(state, editing=Editing("text", "hunter2", secret["prompt_id"], secret=True))
    assert "hunter2" not in text_of(typing) and "Go on?" in text_of(typing), "the question stays while one types"
    left = typing.refreshed(many(1), now=1.0)
    assert left.editing is not None and left.editing.gone, "keys that come now do not go to another question"
    assert "nothing is sent" in text_of(left) and "hunter2" not in text_of(left)


def test_what_is_drawn_holds_no_control_sequence_of_the_tool() -> None:
    hostile = prompt("yes_no", excerpt="Go on?\x1b[2J", label="\x1b]0;x\x07job", cwd="/a\x1b[Hb", says="\x1b[3J")
    painted = paint(render_frame(ViewState().refreshed([hostile], now=0.0), 24, 80))
    assert "Go on?^[[2J" in painted
    for sequence in ("\x1b[2J", "\x1b]0;", "\x07", "\x1b[3J", "a\x1b[H"):
        assert sequence not in painted


def test_an_editor_at_rest_asks_nothing_that_could_not_be_told() -> None:
    resting = prompt("unknown", constraints={"secret": False, "idle": True, "commands": True})
    shown = text_of(ViewState().refreshed([resting], now=0.0))
    assert "nothing is waiting for you · 1 at its prompt" in shown, "it is listed, and does not count"
    assert "not recognised" in text_of(ViewState().refreshed([prompt("unknown")], now=0.0))


def test_every_key_that_the_view_names_does_what_it_says() -> None:
    unknown, words = prompt("unknown"), prompt("free_text", whole=False)
    said = text_of(ViewState().refreshed([unknown], now=0.0))
    assert "x leaves it alone" in said and decide_key("x", unknown) == Intention("leave")
    assert "v shows the screen" in said and decide_key("v", unknown) == Intention("view")
    assert "c cancels" not in said
    said = text_of(ViewState().refreshed([prompt("yes_no", whole=False)], now=0.0))
    assert "attach (a)" in said and decide_key("a", prompt("yes_no")) == Intention("attach")
    said = text_of(ViewState().refreshed([words], now=0.0))
    assert "attach (Ctrl-A)" in said and decide_key("\x01", words) == Intention("attach")


def test_after_an_answer_the_next_question_is_selected_and_not_an_idle_tool() -> None:
    first, second, *_ = many(2)
    idle = prompt("free_text", "z" * 36, constraints={"secret": False, "idle": True})
    state = ViewState().refreshed([first, second, idle], now=0.0).moved(1, now=1.0)
    assert state.selected == second["prompt_id"]
    assert state.refreshed([first, idle], now=2.0).selected == first["prompt_id"]
    assert state.refreshed([idle], now=2.0).selected == idle["prompt_id"]


QUEUED = {
    "queue_id": "c0ffee00" * 4,
    "session_id": "s" * 36,
    "name": "shop-api",
    "text": "Run the linter over everything and mend what it finds, then commit with a message that says why.\nPush.",
    "by": "telegram:7",
    "by_name": "Ada",
    "created_at": "2026-01-01T00:00:00.000000+00:00",
}


def test_what_is_queued_stands_whole_where_nothing_waits_and_behind_a_key_where_something_does() -> None:
    state = drawn(replace(ViewState(), queue=(QUEUED,)).refreshed([], now=0.0))
    alone = text_of(state)
    assert "nothing is waiting for you · 1 queued" in alone and "shop-api · Ada" in alone and "c0ffee00" in alone
    assert "that says why." in " ".join(alone.split()) and "Push." in alone
    state = drawn(state.refreshed([prompt("yes_no")], now=1.0))
    assert "1 waiting · 1 queued (i)" in text_of(state) and "shop-api" not in text_of(state)
    assert decide_key("i", state.current) == Intention("queue")
    state = drawn(state.toggled("queue"))
    assert "shop-api · Ada" in text_of(state)
    assert "press i to see the question" in state.hindrance(now=9.0)
    assert drawn(state.toggled("queue")).hindrance(now=9.0) == ""


def test_a_question_that_comes_while_the_queue_is_read_is_shown() -> None:
    state = drawn(replace(ViewState(), queue=(QUEUED,)).refreshed([], now=0.0).toggled("queue"))
    state = drawn(state.refreshed([prompt("yes_no")], now=1.0))
    assert state.aside == "" and state.hindrance(now=9.0) == ""


def test_a_menus_own_letter_comes_before_the_queue() -> None:
    menu = {**MENU, "choices": [{"value": "i", "label": "Ignore"}, {"value": "s", "label": "Stop"}]}
    assert decide_key("i", menu) == Intention("answer", "i")


@pytest.mark.parametrize(("rows", "cols"), [(24, 80), (12, 40), (5, 20), (2, 10)])
def test_a_long_queue_keeps_to_the_window(rows: int, cols: int) -> None:
    state = replace(ViewState(), queue=(QUEUED,) * 40).refreshed([], now=0.0)
    frame = render_frame(state, rows, cols)
    assert len(frame.lines) == rows and all(cells(line.text) <= cols for line in frame.lines)


def test_a_narrow_window_keeps_how_much_there_is_to_read_and_cuts_no_word_of_the_title() -> None:
    long = "\n".join(f"line {n}" for n in range(60))
    asked = prompt("yes_no", label="demo", cwd="/home/ada/src/a-shop-with-a-long-name", excerpt=long, question=long)
    state = drawn(ViewState(prompts=(asked,), selected=asked["prompt_id"]), 15, 44)
    (title,) = (line for line in text_of(state, 15, 44).split("\n") if line.startswith("── "))
    assert title.rstrip("─") == "── demo · yes or no · 1/1 · lines 1-8 of 60 "
    wide = text_of(drawn(state, 15, 140), 15, 140)
    assert "── demo · bash · /home/ada/src/a-shop-with-a-long-name · yes or no · aaaaaaaa · 1/1 · lines" in wide
