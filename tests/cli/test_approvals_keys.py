"""What a key means in `approvals`, and that it never answers a prompt one was not looking at."""

from __future__ import annotations

import pytest

from atlasbridge.cli.approvals_view import ARMING_S, Board, Intention, decide_key, render_board


def prompt(kind: str, prompt_id: str = "a" * 36, **fields):
    return {
        "prompt_id": prompt_id,
        "type": kind,
        "tool": "bash",
        "confidence": "high",
        "excerpt": "Go on?\x1b[2J",
        "created_at": "",
        "choices": [],
        "constraints": {"secret": False},
        "safe_default": "",
        **fields,
    }


MENU = prompt("multiple_choice", choices=[{"value": "1", "label": "Yes"}, {"value": "2", "label": "No"}])


@pytest.mark.parametrize(
    ("key", "shown", "meaning"),
    [
        ("q", None, Intention("quit")),
        ("\x1b[A", None, Intention("up")),
        ("y", None, Intention("")),
        ("y", prompt("yes_no"), Intention("answer", "y")),
        ("x", prompt("yes_no"), Intention("")),
        ("y", MENU, Intention("")),
        ("2", MENU, Intention("answer", "2")),
        ("3", MENU, Intention("")),
        ("\r", prompt("confirm_enter"), Intention("answer", "enter")),
        ("\r", prompt("yes_no"), Intention("")),
        ("\r", prompt("free_text"), Intention("")),
        ("d", prompt("yes_no"), Intention("")),
        ("d", prompt("yes_no", safe_default="n"), Intention("answer", "default")),
        ("t", prompt("free_text"), Intention("text")),
        ("c", MENU, Intention("answer", "cancel")),
    ],
)
def test_a_key_means_only_what_the_prompt_offers(key: str, shown, meaning: Intention):
    assert decide_key(key, shown) == meaning


def test_the_selection_stays_with_its_prompt_when_the_list_changes():
    first, second = prompt("yes_no", "a" * 36), prompt("yes_no", "b" * 36)
    board = Board().refreshed([first, second], now=10.0).moved(1, now=11.0)
    assert board.selected == "b" * 36
    assert board.refreshed([second], now=12.0).selected == "b" * 36


def test_a_prompt_that_took_the_place_of_another_is_not_answered_at_once():
    board = Board().refreshed([prompt("yes_no", "a" * 36)], now=0.0)
    assert board.armed(ARMING_S + 0.1)
    board = board.refreshed([prompt("yes_no", "b" * 36)], now=100.0)
    assert not board.armed(100.1) and board.armed(100.1 + ARMING_S)


def test_what_is_drawn_holds_no_control_sequence_of_the_tool():
    from rich.console import Console

    console = Console(record=True, width=100, file=open("/dev/null", "w"))  # noqa: SIM115 - closed below
    console.print(render_board(Board().refreshed([prompt("yes_no")], now=0.0)))
    console.file.close()
    text = console.export_text()
    assert "Go on?^[[2J" in text and "\x1b" not in text
