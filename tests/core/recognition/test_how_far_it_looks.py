"""Every number of recognition has pictures on either side of it: how much may stand around a question, and what is too
much to be one."""

from __future__ import annotations

import pytest
from tests.support.playbook import POLLING, RAW, READING, TICKING, Nothing, Playbook, Raised

from atlasbridge.core.detection.events import ProbeAnswer, ProbeState
from atlasbridge.core.prompt.answer import decide_answer, encode_answer
from atlasbridge.core.prompt.model import Answer

HIDE = "\x1b[?25l"
FULL = "\x1b[?1049h\x1b[H" + HIDE
BAR = "─" * 80


def labels(play: Playbook) -> list[str]:
    return [choice.label for choice in play.prompt.choices]


def typed(play: Playbook, value: str) -> bytes:
    answer = decide_answer(play.prompt, value)
    assert isinstance(answer, Answer), answer
    return b"".join(step.keys for step in encode_answer(play.prompt, answer))


def lit(words: list[str], at: int) -> str:
    return "\n".join(f"   \x1b[7m{word}\x1b[m" if place == at else f"   {word}" for place, word in enumerate(words))


def test_five_rows_may_explain_a_choice() -> None:
    rows = [f"  reason number {word}" for word in ("one", "two", "three", "four", "five")]
    first, last = "\n".join(rows), "\n".join(f"   {row}" for row in rows)
    play = Playbook(POLLING) >> f"{HIDE}Which one?\n\n❯ 1. Fast\n{first}\n  2. Safe\n{last}\n" >> 1.0
    assert play << Raised("multiple_choice")
    assert labels(play) == ["Fast", "Safe"]
    assert all("number five" in choice.detail for choice in play.prompt.choices)


@pytest.mark.parametrize(
    ("said", "kind"), [("It turns on when you press esc to interrupt it.", "free_text"), ("", "free_text")]
)
def test_what_a_tool_says_of_itself_stands_at_its_foot_and_not_in_its_talk(said: str, kind: str) -> None:
    idle = f"● {said}\n\n{BAR}\n❯ \n{BAR}\n  ? for shortcuts"
    play = Playbook(POLLING, "claude") >> f"> hello\n\n{idle}" >> 2.0 << Raised(kind)
    assert play.prompt.constraints.get("idle") is True


def test_what_a_tool_says_of_itself_may_stand_above_its_input_box() -> None:
    working = f"● Reading\n\n  (esc to interrupt)\n{BAR}\n❯ \n{BAR}\n"
    assert Playbook(POLLING, "claude") >> f"> hello\n\n{working}" >> 3.0 << Nothing()


RADIO = "Which colour?\n\n● red\n○ green\n○ blue\n"


@pytest.mark.parametrize(("between", "kind"), [(3, "unknown"), (8, "multiple_choice")])
def test_a_hint_that_boxes_are_switched_belongs_to_the_list_below_it(between: int, kind: str) -> None:
    words = "\n".join(f"Line {word}." for word in "abcdefgh"[: between - 1])
    play = Playbook(POLLING) >> f"{HIDE}Press space to toggle.\n{words}\n{RADIO}" >> 1.0
    assert play << Raised(kind)


NAMES = ["Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Gingko", "Hazel", "Ironwood"]


def test_a_highlight_marks_one_of_a_short_list_below_a_few_rows_of_explanation() -> None:
    head = "Trees\n\nFor the garden.\nThe soil is dry.\nIt is sunny.\nWhich one?\n\n"
    play = Playbook(POLLING) >> FULL + head + lit(NAMES, 2) >> 1.0 << Raised("multiple_choice")
    assert labels(play) == NAMES


@pytest.mark.parametrize(
    ("head", "rows"),
    [
        ("\n".join(f"Row {word} of it" for word in "abcdefghi") + "\n\n", NAMES),
        ("Files\n\n", [f"{name} {kind}" for name in NAMES for kind in ("big", "small")]),
        ("Mail\n\n", [f"{name}: a word about the tree in the garden" for name in NAMES]),
    ],
    ids=["much around it", "many rows", "long rows"],
)
def test_a_highlight_in_a_browser_of_files_or_mails_is_no_choice(head: str, rows: list[str]) -> None:
    assert Playbook(POLLING) >> FULL + head + lit(rows, 2) >> 1.0 << Raised("unknown")


@pytest.mark.parametrize("free", [4, 7])
def test_an_input_box_may_leave_some_columns_free(free: int) -> None:
    edge = "─" * (78 - free)
    left = " " * (free // 2)
    box = f"{left}╭{edge}╮\n{left}│ > {' ' * (75 - free)}│\n{left}╰{edge}╯\n{left} model  ~/work"
    play = Playbook(TICKING) >> HIDE + f"It asks `Continue? [Y/n]` there.\n\n{box}" >> 3.0 << Raised("free_text")
    assert play.prompt.constraints.get("idle") is True


def test_a_frame_of_half_the_screen_is_no_input_box() -> None:
    edge = "─" * 34
    box = f"╭{edge}╮\n│ > {' ' * 31}│\n╰{edge}╯"
    play = Playbook(TICKING) >> HIDE + f"Continue? [Y/n]\n\n{box}" >> 15.0
    assert not any("idle" in str(command) for _, command in play.heard)


# ---------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("question", "once", "ever", "stops"),
    [
        ("Diesen Befehl ausführen?", "Ja", "Ja, immer", "Abbrechen"),
        ("Exécuter cette commande ?", "Oui", "Oui, toujours", "Annuler"),
        ("¿Ejecutar esta orden?", "Sí", "Sí, siempre", "Cancelar"),
        ("Executar este comando?", "Sim", "Sim, sempre", "Cancelar"),
        ("Eseguire questo comando?", "Sì", "Sì, sempre", "Annulla"),
        ("Выполнить команду?", "Да", "Да, всегда", "Отмена"),
        ("このコマンドを実行しますか？", "はい", "はい、常に許可", "キャンセル"),
        ("要执行此命令吗？", "是", "始终允许", "取消"),
        ("이 명령을 실행할까요?", "예", "항상 허용", "취소"),
    ],
)
def test_a_yes_is_for_this_once_and_what_cancels_refuses_in_every_language(
    question: str, once: str, ever: str, stops: str
) -> None:
    listed = f"{HIDE}{question}\n\n❯ 1. {ever}\n  2. {once}\n  3. {stops}\n"
    play = Playbook(POLLING) >> listed >> 1.0 << Raised("multiple_choice")
    assert [(choice.always, choice.refuses) for choice in play.prompt.choices] == [
        (True, False),
        (False, False),
        (False, True),
    ]
    assert typed(play, "y") == b"\x1b[B\r"
    assert typed(play, "n") == b"\x1b[B\x1b[B\r"


@pytest.mark.parametrize("asked", ["Wachtwoord: ", "Hasło: ", "Lösenord: "])
def test_a_secret_is_known_by_its_word_in_languages_that_have_no_file(asked: str) -> None:
    play = Playbook(RAW) >> asked >> 1.0 << Raised("free_text")
    assert play.prompt.constraints.get("secret") is True


# ---------------------------------------------------------------- programs

MESSAGE = "\n# Please enter the commit message for your changes. Lines starting\n# with '#' will be ignored.\n#\n"


@pytest.mark.parametrize(
    ("program", "keys"), [("vim", b"ggOfirst\x1b:wq\r"), ("nvim", b"ggOfirst\x1b:wq\r"), ("nano", b"first\x0f\r\x18")]
)
def test_a_commit_message_is_written_into_the_editor_that_stands_there(program: str, keys: bytes) -> None:
    probe = ProbeAnswer(ProbeState.POLLING, "polls", echo=False, canonical=False, command=program)
    play = Playbook(probe) >> "\x1b[?1049h\x1b[H" + MESSAGE + "\x1b[H" >> 1.0 << Raised("free_text")
    assert typed(play, "first") == keys


def test_a_page_that_says_which_key_goes_on_is_left_by_it() -> None:
    page = "Changes in this release\n\n  Nothing of note.\n\n[Press any key to continue]\x1b[H"
    assert Playbook(RAW) >> "\x1b[?1049h\x1b[H" + page >> 1.0 << Raised("confirm_enter")


OFFER = (
    "   Meet ClinePass\n\n   One key for all models.\n\n   https://cline.bot/pass\n\n   \x1b[44m Open page \x1b[m\n\n"
    "   Press Enter to open, any other key to close\n"
)


def test_an_offer_of_cline_is_opened_by_enter_and_closed_by_any_other_key() -> None:
    play = Playbook(POLLING, "cline") >> FULL + OFFER >> 1.0 << Raised("yes_no")
    assert typed(play, "y") == b"\r"
    assert typed(play, "n") == b"\x1b"


AWAITING = (
    "╭──────────────────────────────────────────────╮\n│ ⊶  Shell ./ask                (Tab to focus) │\n"
    "│ Which name? {typed:<34}│\n╰──────────────────────────────────────────────╯\n\n"
    " ! Shell awaiting input (Tab to focus)\n"
    + BAR
    + "\n\n >   Type your message or @path/to/file\n\n ~/work  no sandbox\n"
)


def test_a_command_that_asks_inside_gemini_is_answered_behind_tab() -> None:
    play = Playbook(POLLING, "gemini") >> HIDE + AWAITING.format(typed="") >> 1.0 << Raised("free_text")
    assert typed(play, "Ann").startswith(b"\t")


def test_a_command_that_asks_inside_gemini_stays_open_while_gemini_draws() -> None:
    busy = ProbeAnswer(ProbeState.BUSY, "one of its threads runs", echo=False, canonical=False)
    play = Playbook(busy, "gemini") >> HIDE + AWAITING.format(typed="") >> 1.0 << Raised("free_text")
    for spinner in "⠙⠹⠸⠼⠴⠦":
        play >> f"\x1b[1;58H{spinner}" >> 0.1
    play << Nothing()
    assert play.detector.open_prompt is not None


@pytest.mark.parametrize("restarted", [True, False])
def test_the_trust_that_gemini_was_given_before_it_began_anew_does_not_hide_its_input_box(restarted: bool) -> None:
    rows = ("● 1. Trust folder (work)", "  2. Trust parent folder (me)", "  3. Don't trust")
    trust = "".join(f"│ {row:<34} │\n" for row in rows)
    again = (
        "\n Gemini CLI is restarting to apply the trust changes...\n\n Gemini CLI v0.61.0\n\n\n" if restarted else ""
    )
    box = f"{BAR}\n Shift+Tab to accept edits\n\n >   Type your message or @path/to/file\n\n ~/work  no sandbox\n"
    play = Playbook(POLLING, "gemini") >> f"{HIDE}╭{'─' * 36}╮\n{trust}╰{'─' * 36}╯\n{again}{box}" >> 1.0
    play << (Raised("free_text") if restarted else Nothing())


def test_a_command_that_runs_inside_gemini_does_not_make_its_input_box_ask() -> None:
    """The box stands below the terminal of the command, but Gemini says itself that it works."""
    inside = ProbeAnswer(ProbeState.BUSY, "inside a terminal", echo=False, canonical=False, rows=3)
    running = AWAITING.replace("! Shell awaiting input (Tab to focus)", "⠙ Thinking... (esc to cancel, 2s)")
    Playbook(inside, "gemini") >> HIDE + running.format(typed="") >> 15.0 << Nothing()


@pytest.mark.parametrize("sign", ["🔐 ❯", "🔑 ❯", "🔐"])
def test_what_hermes_hides_is_a_secret(sign: str) -> None:
    play = (
        Playbook(POLLING, "hermes")
        >> f"╭{'─' * 40}╮\n│ The key of the service{'':<18}│\n╰{'─' * 40}╯\n{BAR}\n{sign} \n{BAR}"
        >> 1.0
    )
    assert play << Raised("free_text")
    assert play.prompt.constraints.get("secret") is True


# ---------------------------------------------------------------- patterns


def test_a_list_that_has_had_its_answer_is_not_offered_again() -> None:
    play = Playbook(READING) >> "1) a4\n2) a5\nYour choice: 2\nNumber of copies: " >> 1.0 << Raised("free_text")
    assert play.prompt.choices == ()


def test_the_letters_that_a_question_quotes_are_what_is_typed() -> None:
    play = Playbook(READING) >> 'Enter "y" or "n": ' >> 1.0 << Raised("yes_no")
    assert (typed(play, "y"), typed(play, "n")) == (b"y\r", b"n\r")


def test_a_line_that_names_its_limit_takes_no_more() -> None:
    play = Playbook(READING) >> "Country (max 2 characters): " >> 1.0 << Raised("free_text")
    assert play.prompt.constraints.get("max_length") == 2


@pytest.mark.parametrize("line", ["irb(main):001:0> ", "(gdb) ", "In [3]: ", "postgres=# "])
def test_what_takes_commands_asks_nothing(line: str) -> None:
    play = Playbook(POLLING) >> f"Welcome.\n{line}" >> 1.0 << Raised("free_text")
    assert play.prompt.constraints.get("commands") is True


def test_a_question_of_which_the_tool_hides_rows_is_not_whole() -> None:
    play = Playbook(POLLING) >> f"{HIDE}Run this?\n  rm a\n  … 12 more lines\n\n❯ Yes\n  No\n" >> 1.0
    assert play << Raised("yes_no")
    assert not play.prompt.whole
