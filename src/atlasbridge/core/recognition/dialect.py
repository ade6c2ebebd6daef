"""A tool's dialect as data: what blinks, what says "busy", which lines ask what, and how its menus are chosen.

`adapters/dialect_files.py` reads and validates the files and selects the dialect of a tool.
"""

from __future__ import annotations

import re
from functools import lru_cache

from atlasbridge.core.values import frozen, replace

# Arrows, angle brackets and hands. A sign that is also a bullet counts as a pointer only with further evidence.
POINTERS = "❯❱❭❩❥⟩⟫〉》›»>⊳▸▹▶▷►▻⏵‣→⇒⇛⇝⇢⇨⇾⟶↦↪↳➔➙➛➜➝➞➟➠➡➢➣➤➥➦➧➨➩➪➭➮➯➱➲➳➵➸➺➻➼➽➾⮕⮞⯈🠖🡒☛☞👉"


@frozen
class Rule:
    """A pattern in a region that says what is asked. The named group `ask`, if there is one, is the question."""

    id: str
    pattern: str
    type: str
    region: str = "line"
    score: float = 0.8
    priority: int = 50
    key: bool = False  # one key answers, no Enter
    secret: bool = False
    idle: bool = False
    multiline: bool = False
    before_text: str = ""  # keys to type before the text
    clears: bool = False  # the field can hold a value, which is erased before the text
    before_shows: str = ""  # text that must be on the screen after they have worked
    after_text: str = ""  # keys that end the text instead of Enter
    rests: bool = False  # an Enter right after the text would be part of it, so it is sent a while later
    popup: bool = False  # a list of completions can take the first Enter
    programs: str = ""  # a pattern for the name of the program that waits
    unless: str = ""  # if this pattern is on the screen, the rule does not apply
    deaf_s: float = 0.0  # a match that is younger than this is only a transition
    yes: str = ""
    no: str = ""


@frozen
class MenuRule:
    """How a menu of this kind is chosen. Keys are names (`enter`, `right`, `esc`) that are separated by blanks."""

    id: str
    needs: str = ""  # a pattern that must be on the screen
    top: str = ""  # the line above the menu where its dialog starts
    topmost: bool = False  # use the first of several such lines, because the subject can contain a similar one
    boxed: bool = False  # the dialog shows its subject in a box of its own
    most_rows: int = 0  # from that line to the menu: a dialog this high leaves out rows without notice; 0: no limit
    most_share: float = 0.0  # share of the window's rows: a dialog whose frame is this high scrolls inside
    choose: str = "arrows"
    priority: int = 50
    score: float = 0.9
    cancel: str = ""  # keys that refuse if no choice does
    refuse: str = ""  # labels that refuse in this menu, instead of the dialect's words
    text_choice: str = ""  # labels that open a text field
    text_keys: str = ""  # keys before the text; "" means the keys of the choice
    text_typed: bool = False  # free text is typed directly, wherever the highlight is
    text_reach: str = ""  # keys that lead to it if it is scrolled out of sight
    toggle: str = "space"  # the key that marks a box in a multiple-choice list; "digit": its number or position
    submit: str = "enter"  # the key that submits such a list
    text_submit: str = ""  # the key that submits free text in such a list; "": it takes none
    hotkeys: str = r"\((\w|esc)\)\s*$"
    across: bool = False  # the choices are side by side
    apart: bool = False  # empty rows are allowed between it and the input box at the foot
    wraps_back: bool = False  # a choice that is too long continues in the pointer's column
    unpointed: bool = False  # nothing points at the highlighted choice: numbered rows suffice
    labels: str = ""  # the labels, if nothing else separates them from other words in the row; with the groups
    # `key` and `label` if each has its own key: `[y] Approve`
    deaf_s: float = 0.0  # the tool ignores keys that come sooner after the menu has appeared
    permission: bool = False  # it asks for permission: people want to know the folder
    follow: str = ""  # the label of a choice that opens a second dialog
    follow_keys: str = ""  # the keys that take it: `enter?Words_of_the_second_dialog enter`; a second Enter on the next
    # permission would allow it, so it is typed only where those words are shown
    refuse_keys: str = ""  # the keys that take a choice that `refuse` matches, wherever the highlight is


@frozen
class SubjectRule:
    """Where a dialog shows its subject. Without `after` and `first`, the subject is in the dialog's own box."""

    menus: str  # a pattern for the ids of the menus
    kind: str  # the kind of subject
    when: str = ""  # a pattern in the dialog's text
    after: str = ""  # the subject starts below this row
    first: str = ""  # the subject starts in this row, after the match
    hang: int = -1  # indentation of the rows below that one; -1: the same as the match
    gutter: str = ""  # a bar that the tool draws before each row if there are several
    until: str = ""  # the subject ends above the last row like this; "": above the menu
    indent: int = 0  # columns that the tool leaves free on each side
    boxed: bool = False
    target: str = ""  # group 1: the file or the address
    elsewhere: bool = False  # the dialog only names the subject: its content is further up, or not shown


@frozen
class Mark:
    """A pattern in a region that gives the state of the whole tool: a busy mark, or a state in its window title.

    The state `background` means that the tool is idle while something it started continues to work.
    """

    pattern: str
    region: str = "footer"
    state: str = "busy"


@frozen
class Dialect:
    """A tool's dialect. `idles` says that the tool has its own input box, so a line or screen that the dialect does
    not know is not a question yet.
    """

    name: str
    extends: str = ""
    versions: tuple[str, ...] = ()
    not_versions: tuple[str, ...] = ()  # of another program with the same name
    commands: tuple[str, ...] = ()
    blinking: str = ""  # characters that appear and disappear while nothing happens
    counting: tuple[str, ...] = ()  # parts of the text that count by themselves
    passing: tuple[str, ...] = ()  # questions that say that they continue without an answer
    noise: tuple[str, ...] = ()  # lines without information for a person, which excerpts omit
    refuse: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    not_secret: tuple[str, ...] = ()  # removed from a question before `secret` is searched for
    pointers: str = POINTERS
    quiet_programs: tuple[str, ...] = ()  # live displays, which redraw and wait for nobody
    screen_programs: tuple[str, ...] = ()  # full-screen programs that wait for keys
    marks: tuple[Mark, ...] = ()
    rules: tuple[Rule, ...] = ()
    menus: tuple[MenuRule, ...] = ()
    subjects: tuple[SubjectRule, ...] = ()

    @property
    def says_busy(self) -> bool:
        """Whether it shows a busy mark while it works. Then nothing else beside its input box is work."""
        return any(mark.state == "busy" for mark in self.marks)

    @property
    def idles(self) -> bool:
        return any(rule.idle for rule in self.rules)


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when it is first used, because a session host starts before it needs any."""
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


@lru_cache(maxsize=512)  # labels and rows are on the screen for many looks
def matches_any(patterns: tuple[str, ...], text: str) -> bool:
    return any(compiled(pattern).search(text) for pattern in patterns)


def steady(dialect: Dialect, text: str) -> str:
    return "\n".join([_steady_row(dialect.blinking, dialect.counting, row) for row in text.split("\n")])


@lru_cache(maxsize=256)
def _steady_row(blinking: str, counting: tuple[str, ...], row: str) -> str:
    row = row.translate(str.maketrans(blinking, " " * len(blinking)))
    for pattern in counting:
        row = compiled(pattern).sub(" ", row)
    return row


def extend(child: Dialect, parent: Dialect) -> Dialect:
    """Combine two dialects. Of two rules with equal priority, the child's wins."""
    lists = "counting noise refuse always secret not_secret quiet_programs screen_programs marks rules menus subjects"
    merged = {name: getattr(child, name) + getattr(parent, name) for name in (*lists.split(), "blinking", "pointers")}
    merged["rules"] = tuple(sorted(merged["rules"], key=lambda rule: -rule.priority))
    merged["menus"] = tuple(sorted(merged["menus"], key=lambda rule: -rule.priority))
    return replace(child, **merged)
