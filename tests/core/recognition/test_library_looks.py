"""Dialogs in the look of the libraries that tools are made with, and pictures that only look alike: of no tool at all.

Each is drawn as its library draws it, in several languages; what they say was made up.
"""

from __future__ import annotations

import pytest
from tests.support.playbook import POLLING, TICKING, Nothing, Playbook, Raised

from atlasbridge.core.detection.events import ProbeAnswer
from atlasbridge.core.prompt.keys import Shows

HIDE = "\x1b[?25l"
FULL = f"\x1b[?1049h\x1b[2J\x1b[H{HIDE}"
CARET = "\x1b[7m \x1b[m"
PASTE = "\x1b[?2004h"


def grey(text: str) -> str:
    return f"\x1b[38;5;240m{text}\x1b[m"


def true_grey(text: str) -> str:
    return f"\x1b[38;2;98;98;98m{text}\x1b[m"


def on(colour: int, text: str) -> str:
    return f"\x1b[48;5;{colour}m{text}\x1b[m"


def field(placeholder: str) -> str:
    """A caret on the first letter of what may be typed."""
    return f"\x1b[7m{placeholder[0]}\x1b[m{grey(placeholder[1:])}"


def boxed(title: str, *rows: str, size: int = 50) -> str:
    """The right side is put where it belongs, however wide the words are."""
    drawn = [f" │ {row}\x1b[{size + 3}G│" for row in rows]
    return "\n".join([f" ┌ {title} {'─' * (size - len(title) - 2)}┐", *drawn, f" └{'─' * size}┘"])


LISTS = [
    pytest.param(
        f"┃ Choose your burger\n┃ \x1b[35m>\x1b[m Classic\n┃   Chicken\n┃   Fish\n\n{grey('↑ up • ↓ down • enter')}",
        ["Classic", "Chicken", "Fish"],
        id="huh",
    ),
    pytest.param(
        f"┃ Toppings\n┃ > • Lettuce\n┃   ✓ Tomato\n┃   • Cheese\n\n{grey('x toggle • ↑ up • enter submit')}",
        ["Lettuce", "Tomato", "Cheese"],
        id="huh, several",
    ),
    pytest.param(
        f"Choose:\n\x1b[35m> Red\x1b[m\n  Green\n\n{grey('←↓↑→ navigate • enter submit')}", ["Red", "Green"], id="gum"
    ),
    pytest.param(
        "? Choose a colour:  [Use arrows to move, type to filter]\n\x1b[36m> red\x1b[m\n  blue",
        ["red", "blue"],
        id="survey",
    ),
    pytest.param(
        "? Which fruit?  \x1b[s\n> Banana\n  Apple\n[↑↓ to move, enter to select, type to filter]\x1b[u\x1b[?25h",
        ["Banana", "Apple"],
        id="inquire",
    ),
    pytest.param("? Pick your flavour ›\n❯ Vanilla\n  Lemon", ["Vanilla", "Lemon"], id="dialoguer"),
    pytest.param(
        "Use the arrow keys to navigate: ↓ ↑ → ← \n? Select Day: \n  ▸ Monday\n    Tuesday\n↓   Wednesday",
        ["Monday", "Tuesday", "Wednesday"],
        id="promptui",
    ),
    pytest.param(
        "Choose your path? (Press ↑/↓ arrow to move and Enter to select)\n‣ North\n  South",
        ["North", "South"],
        id="tty-prompt",
    ),
    pytest.param("Which fruit?\n\n> Apple\n  Plum\n\n(Move to reveal more)", ["Apple", "Plum"], id="spectre"),
    pytest.param(boxed("Which role?", "› ● Member", "  ○ Owner"), ["Member", "Owner"], id="laravel"),
    pytest.param("Please choose:\n > 1. Pizza\n   2. Salad", ["Pizza", "Salad"], id="prompt_toolkit"),
    pytest.param("│\n◆  Pick a type.\n│  ● One\n│  ○ Two\n└", ["One", "Two"], id="clack"),
    pytest.param(
        boxed("Erlaubnis", "Darf der Befehl laufen?", "", "  rm -rf build", "", "❯ 1. Ja, einmal", "  2. Nein"),
        ["Ja, einmal", "Nein"],
        id="ink, German",
    ),
    pytest.param("? Выберите пакет:\n❯ сервер\n  клиент\n\n(Стрелки)", ["сервер", "клиент"], id="inquirer, Russian"),
    pytest.param("是否允许执行此命令？\n\n› 允许一次\n  拒绝", ["允许一次", "拒绝"], id="ink, Chinese"),
    pytest.param("コマンドを実行しますか？\n\n❯ はい\n  いいえ", ["はい", "いいえ"], id="ink, Japanese"),
    pytest.param("¿Ejecutar la orden?\n\n❯ Sí\n  No, cancelar", ["Sí", "No, cancelar"], id="ink, Spanish"),
    pytest.param(
        f"Select a model\n\n❯ Fast\n  {grey('Small and quick')}\n\n  Deep\n  {grey('Slow')}\n\n{grey('enter: take')}",
        ["Fast", "Deep"],
        id="explained in grey, apart",
    ),
    pytest.param(
        f"Select a model\n\n❯ Fast\n  {true_grey('Small and quick')}\n  Deep\n  {true_grey('Slow')}",
        ["Fast", "Deep"],
        id="explained in a grey of its own",
    ),
    pytest.param(
        "Select a model\n\n❯ Fast\n    Small and quick\n  Deep\n    Slow\n\nEnter to confirm, Esc to cancel",
        ["Fast", "Deep"],
        id="explained further in",
    ),
    pytest.param(
        f"┃ Would you like it?\n┃\n┃ {on(212, '  Yes!  ')}  {on(237, '  No.  ')}\n\n{grey('←/→ toggle')}",
        ["Yes!", "No."],
        id="huh, yes or no",
    ),
    pytest.param(
        f"Are you sure?\n\n {on(212, '   Yes   ')}  {on(235, '   No   ')}\n\n{grey('←→ toggle • enter submit')}",
        ["Yes", "No"],
        id="gum, yes or no",
    ),
]


@pytest.mark.parametrize("probe", [POLLING, TICKING])
@pytest.mark.parametrize(("drawn", "labels"), LISTS)
def test_a_list_is_offered_with_all_of_its_choices_and_nothing_else(
    probe: ProbeAnswer, drawn: str, labels: list[str]
) -> None:
    kind = "yes_no" if labels in (["Yes", "No"], ["はい", "いいえ"]) else "multiple_choice"
    play = Playbook(probe) >> HIDE + drawn >> 3.0 << Raised(kind)
    assert [choice.label for choice in play.prompt.choices] == labels


def test_what_explains_a_choice_goes_with_it_and_is_shown_beside_it() -> None:
    drawn = f"Trust?\n\n❯ Trust this folder\n  {grey('Starts its servers.')}\n\n  Do not trust\n  {grey('Leaves.')}\n"
    play = Playbook(POLLING) >> HIDE + drawn >> 3.0 << Raised("multiple_choice", "Trust?")
    assert [choice.detail for choice in play.prompt.choices] == ["Starts its servers.", "Leaves."]
    assert play.prompt.choices[1].refuses
    assert play.prompt.choices[1].steps[0].until == Shows("Do not trust")


QUESTIONS = [
    pytest.param("? Do you like pie? (y/N) ", "yes_no", id="survey"),
    pytest.param(f"{HIDE}? Do you want to continue? (y/n) › no", "yes_no", id="dialoguer"),
    pytest.param(f"{HIDE}? Delete it? [y/N] {CARET}", "yes_no", id="promptui"),
    pytest.param("Run it? [y/n] (y): ", "yes_no", id="spectre"),
    pytest.param(" Do you wish to continue? (yes/no) [no]:\n > ", "yes_no", id="symfony"),
    pytest.param("? 是否继续？(y/N) ", "yes_no", id="inquirer, Chinese"),
    pytest.param("Allow it? Use 't' to trust it. [y/n/t]:\n\n> ", "multiple_choice", id="keys and a mark"),
    pytest.param("rm -rf build\n[E]xecute, [D]escribe, [A]bort: ", "multiple_choice", id="letters in words"),
    pytest.param("Deseja continuar? [S/n] ", "yes_no", id="Portuguese"),
    pytest.param("계속하시겠습니까? (y/N) ", "yes_no", id="Korean"),
    pytest.param("? Description [Enter to launch editor] ", "confirm_enter", id="survey, editor"),
    pytest.param(f"{HIDE}┃ Your name?\n┃ > {field('Kim')}\n\n{grey('enter submit')}", "free_text", id="huh"),
    pytest.param(HIDE + boxed("What is your name?", field("E.g. Kim")), "free_text", id="laravel"),
    pytest.param(FULL + boxed("Commit message", f"mend the parser{CARET}"), "free_text", id="ratatui"),
    pytest.param(
        HIDE + boxed("deploy", "Overwrite? [y/N] " + CARET) + "\n ⠴ Working", "yes_no", id="a command in a box"
    ),
]


@pytest.mark.parametrize("probe", [POLLING, TICKING])
@pytest.mark.parametrize(("drawn", "kind"), QUESTIONS)
def test_a_question_is_raised_as_what_it_is(probe: ProbeAnswer, drawn: str, kind: str) -> None:
    play = Playbook(probe) >> drawn >> 3.0 << Raised(kind)
    assert not play.prompt.constraints.get("idle")


def test_what_stands_in_a_field_with_a_drawn_caret_is_emptied_first() -> None:
    play = Playbook(POLLING) >> FULL + boxed("Commit message", f"mend it{CARET}") >> 3.0
    play << Raised("free_text", "Commit message")
    assert play.prompt.text_steps[0].keys == b"\x7f" * len("mend it")


def between_bars(words: str, title: str = "", colour: int = 32) -> str:
    """A field in a box of blocks, with sides: in a colour while it gets the keys, grey otherwise."""
    ink, top = f"\x1b[38;5;{colour}m", (f"▔ {title} " if title else "").ljust(40, "▔")
    return f"{ink}▊{top}▎\n▊\x1b[m  {words}\x1b[42G{ink}▎\n▊{'▁' * 40}▎\x1b[m"


FIELDS = [
    pytest.param(
        f"{FULL}What is the name of the project?\n{between_bars(grey('my-project'))}", "?", "", id="words above"
    ),
    pytest.param(f"{FULL} ⭘      App\n{between_bars('', 'Branch name')}", "Branch name", "", id="a title"),
    pytest.param(f"{FULL}Rename it to:\n{between_bars('old name')}", "Rename it to:", "old name", id="with a value"),
    pytest.param(f"{FULL}\x1b[?25hWhat is your name? ", "What is your name?", "", id="the only words"),
    pytest.param(f"{FULL}\x1b[?25hWhich package?\n\nSearch: ", "Search:", "", id="a label below the question"),
]


@pytest.mark.parametrize("probe", [POLLING, TICKING])
@pytest.mark.parametrize(("drawn", "question", "filled"), FIELDS)
def test_the_only_field_of_a_full_screen_takes_words(
    probe: ProbeAnswer, drawn: str, question: str, filled: str
) -> None:
    play = Playbook(probe) >> drawn >> 3.0 << Raised("free_text", question)
    assert b"".join(step.keys for step in play.prompt.text_steps) == b"\x7f" * len(filled)


@pytest.mark.parametrize(
    "drawn",
    [
        f"{FULL}Filter:\n{between_bars('', colour=240)}",
        f"{FULL}User:\n{between_bars('')}\nCity:\n{between_bars('', colour=240)}",
        f"{FULL}Password:\n{between_bars('')}",
        f"{FULL}\x1b[?25h\n\nfor name in names: ",
    ],
    ids=["grey", "two fields", "a secret", "code"],
)
def test_a_field_whose_keys_or_words_are_not_sure_is_left_to_a_person(drawn: str) -> None:
    Playbook(POLLING) >> drawn >> 12.0 << Raised("unknown")


@pytest.mark.parametrize("asked", ["[sudo] password for kim: ", "Enter the API key: "])
def test_a_secret_in_a_box_is_left_to_a_person_who_looks(asked: str) -> None:
    play = Playbook(TICKING) >> HIDE + boxed("sudo make", asked + CARET) + "\n ⠴ Working" >> 3.0 << Raised("unknown")
    assert play.prompt.secret  # whatever keys a person types there are stored nowhere


BELOW = f"\n{'─' * 80}\n❯ \n{'─' * 80}\n  model  ~/work"


def test_a_question_of_a_command_above_the_input_box_is_raised_while_the_tool_works() -> None:
    inner = boxed("Shell deploy", "Overwrite? [y/N] " + CARET)
    play = Playbook(TICKING) >> f"{HIDE}{inner}\n\n ⠴ Thinking... (esc to cancel)\n{BELOW}"
    for mark in "⠋⠙⠹⠸⠼⠴⠦⠧":
        play = play >> 0.1 >> f"\x1b[5;2H{mark}"
    play << Raised("unknown", "Overwrite?")


@pytest.mark.parametrize(
    "rows",
    [("Overwrite? [y/N] ", "done"), ("Overwrite? [y/N] n",), (f"checking for gcc... yes {CARET}",)],
)
def test_what_a_command_wrote_above_the_input_box_asks_nothing(rows: tuple[str, ...]) -> None:
    drawn = f"{HIDE}{boxed('Shell deploy', *rows)}\n\n ⠴ Thinking... (esc to cancel)\n{BELOW}"
    Playbook(TICKING) >> drawn >> 5.0 << Nothing()


RESTING = [
    pytest.param(f">>> {grey('Send a message (/? for help)')}\x1b[5G", id="faded words behind the mark"),
    pytest.param(f"Ready.\n  ╌╌╌ 0%\n> {grey('Enter to send · Ctrl+J newline')}\x1b[3G", id="how it is sent"),
    pytest.param(f"完成。\n\n> {true_grey('输入消息，按 Enter 发送')}\x1b[3G", id="Chinese"),
    pytest.param(f"Fertig.\n\n> {grey('Nachricht eingeben')}\x1b[3G", id="German"),
    pytest.param(f"{HIDE}Done.\n\n> {field('Ask anything')}", id="with a drawn caret"),
    pytest.param(
        f"{HIDE}Done.\n\n╭{'─' * 78}╮\n│ {CARET}{grey('Type @ for files')}\x1b[80G│\n╰{'─' * 78}╯\n  gpt",
        id="in a frame, behind a drawn caret",
    ),
    pytest.param(f"{PASTE}Assistant: All done.\n\nYou: ", id="a chat"),
    pytest.param(f"{PASTE}· Using model: small\nUser: ", id="a chat that has not begun"),
    pytest.param(f"{PASTE}Assistent: Fertig.\n\nDu: ", id="a German chat"),
    pytest.param(f"Done.\n\n      {'─' * 60}\n      ❯ half a line\n      {'─' * 60}\x1b[A\x1b[21G", id="a narrow box"),
]


@pytest.mark.parametrize("drawn", RESTING)
def test_an_unknown_agent_that_waits_for_the_next_instruction_asks_nothing(drawn: str) -> None:
    play = Playbook(POLLING) >> drawn >> 3.0 << Raised("free_text")
    assert play.prompt.constraints.get("idle") is True


@pytest.mark.parametrize(
    "drawn",
    [
        f"> {grey('Enter commit message')}\x1b[3G",
        f"> {grey('Commit-Nachricht')}\x1b[3G",
        f"What shall the team read?\n> {grey('Type a message')}\x1b[3G",
        f"{PASTE}Login to the server\nUser name: ",
        "User: ",
    ],
)
def test_a_field_that_asks_for_something_is_no_idle_input_box(drawn: str) -> None:
    play = Playbook(POLLING) >> drawn >> 3.0 << Raised("free_text")
    assert not play.prompt.constraints.get("idle")


@pytest.mark.parametrize(
    "drawn",
    [
        f"{HIDE}? Please fill in: …\n⊙ First name Kim\n⊙ Last name Doe",
        f"{FULL}\n   Really quit?\n\n   {on(1, '▔▔▔▔▔▔▔▔')}  {on(4, '▔▔▔▔▔▔▔▔')}\n   {on(1, '  Quit  ')}  "
        f"{on(4, '  Stay  ')}\n   {on(1, '▁▁▁▁▁▁▁▁')}  {on(4, '▁▁▁▁▁▁▁▁')}",
        f"{FULL}\n  ▼ Files\n  ├── ▶ src\n  {on(4, '├── README.md')}\n  └── setup.py\n\n  q Quit",
    ],
    ids=["a form with signs", "buttons of blocks", "a tree"],
)
def test_what_nobody_can_tell_the_keys_of_is_left_to_a_person(drawn: str) -> None:
    Playbook(POLLING) >> drawn >> 4.0 << Raised("unknown")


SILENT = [
    pytest.param(f"{HIDE}❯ Build packages\n  ✔ core\n  {{}} web\n  ◼ docs", id="listr"),
    pytest.param(f"{HIDE}Arbeite…\n\n> eins\n> zwei\n\n{{}} 3 von 10", id="quoted lines"),
    pytest.param("\n  ➜  Local:   http://localhost:5173/\n  ➜  press h + enter to show help\n{}", id="vite"),
    pytest.param("\n> app@1.0.0 dev\n> next dev\n\n  - Local: http://localhost:3000\n{}", id="npm run"),
    pytest.param(f"{HIDE}{boxed('Installing', '{} 3 of 10', '████░░░░')}", id="progress in a box"),
    pytest.param(f"{HIDE}{boxed('make', 'checking for gcc... yes ' + CARET)}\n {{}} Working", id="a command's words"),
    pytest.param(f"{FULL}  PID  CMD\n\x1b[7m    1  init   \x1b[m\n   20  bash\n{{}} live", id="a table"),
    pytest.param("\nuser: kim\nhost: dev\nConnecting {}", id="facts"),
    pytest.param(f"{FULL}{boxed('CPU', '{}')}\n{boxed('services', '> web  up', '  db   up')}\n q quit", id="dashboard"),
    pytest.param(f"{FULL}├── src {{}}\n\x1b[7m├── a\x1b[m\n└── b", id="a tree that moves"),
    pytest.param(f"{HIDE}● Todos\n  ☒ read\n  ☐ write\n\n{{}} Working (esc to interrupt)\n{BELOW}", id="a to-do list"),
    pytest.param(f"{HIDE}● Say:\n  ❯ Yes\n    No\n\n{{}} Thinking… (esc to interrupt)\n{BELOW}", id="a quoted list"),
    pytest.param(f"{HIDE}Building {{}}\n\n{on(4, ' Accept ')}  {on(237, ' Cancel 3 ')}", id="a coloured status"),
    pytest.param(f"{HIDE}* All of it\n\n{{}} Pondering… (esc to interrupt)\n{BELOW}", id="an agent at work"),
]


@pytest.mark.parametrize("drawn", SILENT)
def test_what_only_looks_like_it_and_moves_asks_nothing(drawn: str) -> None:
    play = Playbook(TICKING)
    for turn in range(5):
        for mark in "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏":
            play = play >> f"\x1b[2J\x1b[H{drawn.replace('{}', f'{mark} {turn}')}" >> 0.1
    play << Nothing()
