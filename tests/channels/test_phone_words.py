"""What a person reads on a phone: what a command does, an agent's last words, names instead of ids."""

from __future__ import annotations

import pytest
from tests.support.sample_prompt import IDLE, MENU, YES_NO

from atlasbridge.channels import matrix
from atlasbridge.channels.commands import render_status
from atlasbridge.channels.excerpt import (
    EFFECT_WORDS,
    last_words,
    quotes_of,
    render_effects,
    title_whole,
    warn_incomplete,
    whole_text,
)
from atlasbridge.channels.slack import blocks
from atlasbridge.channels.templates import numbered, render_deadline, render_notice
from atlasbridge.core.clock import iso
from atlasbridge.core.daemon.escalation import digest_line
from atlasbridge.core.policy.approval import with_card
from atlasbridge.core.policy.effects import EFFECTS, KINDS
from atlasbridge.core.prompt.model import (
    Choice,
    Prompt,
    PromptRecord,
    PromptState,
    Subject,
    SubjectKind,
    SubjectSource,
)
from atlasbridge.core.session.model import SessionRecord, SessionState
from atlasbridge.core.values import replace

SCREEN = """
 ▐▛███▜▌   Claude Code v2.1
▝▜█████▛▘  Opus
❯ mend the login

● Read(src/login.py)
  ⎿  Read 40 lines

● I mended the login: the token was compared before it was read.
  All 12 tests pass.

────────────────────────────────────────
❯
────────────────────────────────────────
  ⏵⏵ manual mode on
"""


def session(label: str, number: int = 1) -> SessionRecord:
    return SessionRecord(
        f"{number:08d}-0",
        "claude",
        ("claude",),
        "/srv/shop",
        1,
        1,
        "2026-01-01T00:00:00Z",
        SessionState.ACTIVE,
        label=label,
    )


def record(prompt: Prompt, of: SessionRecord, minute: int = 5) -> PromptRecord:
    at, until = iso(1_800_000_000.0), iso(1_800_000_000.0 + 60 * minute)
    return PromptRecord(f"p-{of.label}", of.session_id, prompt, PromptState.AWAITING_REPLY, "n", at, until, 0.0)


def command(text: str, **constraints: object) -> Prompt:
    told = Subject(SubjectKind.COMMAND, text, "/srv/shop", SubjectSource.HOOK, complete=True, shown=text)
    return replace(MENU, subject=told, constraints=dict(constraints))


def test_a_finished_agent_is_quoted_with_its_last_words_alone() -> None:
    (quote,) = quotes_of(replace(IDLE, screen=SCREEN, question=""))
    assert quote.text.startswith("● I mended the login") and quote.text.endswith("All 12 tests pass.")
    assert last_words("plain output\nof a program") == "plain output\nof a program"


def test_the_notice_of_a_shell_at_its_prompt_sends_no_more_of_its_output_than_an_excerpt() -> None:
    output = "\n".join(f"compiling module {number} of 90" for number in range(90)) + "\nada@host:~/src$ "
    (quote,) = quotes_of(replace(IDLE, screen=output, question=""))
    assert len(quote.text) <= 200 and quote.text.endswith("ada@host:~/src$")
    told = "> mend it\n" + "a line of the answer\n" * 95 + "\n> "
    (quote,) = quotes_of(replace(IDLE, screen=told, question=""))
    assert 1900 < len(quote.text) <= 2000, "an agent's answer follows its instruction"


def test_every_effect_has_words_and_a_chat_says_them_once() -> None:
    assert set(EFFECT_WORDS) == set(KINDS)
    told = [{"kind": "deletes", "target": ""}, {"kind": "sends", "target": "get.example.com"}, {"kind": "<b>"}, "x"]
    prompt = command("rm x", **{EFFECTS: told})
    assert render_effects(prompt) == "⚠ deletes files · sends data to get.example.com"
    assert render_effects(MENU) == ""
    asked = record(prompt, session("shop"))
    assert str(matrix.render(matrix.question(asked, session("shop"), "box"))).count("deletes files") == 1
    assert str(blocks.render(blocks.question(asked, session("shop"), "box"))).count("deletes files") == 1


def test_a_part_is_never_called_all_of_it() -> None:
    cut = replace(command("tail"), whole=False, constraints={"missing_lines": 10})
    cut = replace(cut, subject=replace(cut.subject, complete=False))
    assert "missing" in title_whole(cut) and title_whole(command("ls")) == "The whole text:"
    assert warn_incomplete(cut) == "⚠ Incomplete: 10 lines are missing."
    assert "only answer No" in warn_incomplete(replace(cut, constraints={"disagrees": True}))


def test_show_all_says_the_question_once_and_keeps_what_the_screen_does_not_show() -> None:
    screen = "● Bash(ls)\n\n  Run this?\n ❯ 1. Yes\n   2. No"
    asked = replace(command("ls -la"), question="Run this?", screen=screen, whole=True)
    asked = replace(asked, subject=replace(asked.subject, complete=False))
    assert whole_text(asked).count("Run this?") == 1 and whole_text(asked).count("ls -la") == 1
    assert "Above the fold" in whole_text(replace(asked, question="Above the fold.\nRun this?"))


def test_status_lists_what_asks_by_its_deadline_and_what_rests_apart() -> None:
    shop, web, docs = session("shop", 1), session("web", 2), session("docs", 3)
    prompts = [record(command("ls"), shop, 9), record(command("rm x"), web, 3), record(IDLE, docs)]
    told = render_status(prompts, [shop, web, docs])
    assert told.index("web: “rm x”") < told.index("shop: “ls”") < told.index("ready for the next instruction: docs")
    assert told.count("waiting for your answer") == 2


def test_a_digest_quotes_the_command_and_names_no_id() -> None:
    line = digest_line(record(command("git push origin main"), session("shop")), session("shop"))
    assert line == "• shop: “git push origin main”"
    asks = replace(YES_NO, excerpt="Tip: auto mode is on\nOverwrite main.py? (y/n)")
    assert digest_line(record(asks, session("shop")), session("shop")) == "• shop: “Overwrite main.py? (y/n)”"
    long = digest_line(record(command("make\nmake install"), session("shop")), session("shop"))
    assert long == "• shop: “make …”"


def test_a_notice_names_its_session() -> None:
    assert render_notice("A secret is asked for.", session("shop")) == "shop: A secret is asked for."
    assert render_notice("The hub is back.", None) == "The hub is back."


def test_a_button_says_its_label_once() -> None:
    assert numbered(Choice("cancel", "Cancel")) == "Cancel"
    assert numbered(Choice("y", "Yes")) == "Yes" and numbered(Choice("2", "No")) == "2. No"


def test_a_message_that_asks_links_to_its_card_where_the_page_can_be_reached() -> None:
    link = "https://box.example/#prompt/p1"
    assert f"🔗 {link}" in render_deadline(record(replace(YES_NO, constraints={"card": link}), session("shop")))
    assert "🔗" not in render_deadline(record(YES_NO, session("shop")))


@pytest.mark.parametrize("page", ["http://localhost:8484", "http://127.0.0.1:8484", "http://[::1]:8484", ""])
def test_a_page_that_only_this_machine_can_open_is_no_link_in_a_chat(page: str) -> None:
    assert with_card(YES_NO, f"{page}/#prompt/p1") == YES_NO
    reached = with_card(YES_NO, "https://box.example:8485/#prompt/p1")
    assert reached.constraints["card"] == "https://box.example:8485/#prompt/p1"
