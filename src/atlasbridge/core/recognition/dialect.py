"""A tool's way of asking, as data: what blinks, what says "busy", which lines ask what, and how its menus are chosen.

Reading files, refusing what is wrong in them, and which dialect belongs to which tool is left to
`adapters/dialect_files.py`.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from atlasbridge.core.values import frozen, replace
from atlasbridge.core.vocabulary import languages

# Arrows, angles and hands.  What is a bullet as well points only where more speaks for it.
POINTERS = "❯❱❭❩❥⟩⟫〉》›»>⊳▸▹▶▷►▻⏵‣→⇒⇛⇝⇢⇨⇾⟶↦↪↳➔➙➛➜➝➞➟➠➡➢➣➤➥➦➧➨➩➪➭➮➯➱➲➳➵➸➺➻➼➽➾⮕⮞⯈🠖🡒☛☞👉"


@frozen
class Rule:
    """A pattern in a region that says what is asked.  The named group `ask`, where there is one, is the question."""

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
    before_shows: str = ""  # what must stand on the screen once they have worked
    after_text: str = ""  # keys that end the text instead of Enter
    rests: bool = False  # an Enter right behind the text is a part of it: it comes a while later
    popup: bool = False  # a list of completions may take the first Enter
    programs: str = ""  # a pattern for the name of the program that waits
    unless: str = ""  # a pattern on the screen that forbids it
    deaf_s: float = 0.0  # what has stood there for less is only on its way to something else
    yes: str = ""
    no: str = ""


@frozen
class MenuRule:
    """How a menu that looks like this is chosen.  Keys are names (`enter`, `right`, `esc`) with blanks between them."""

    id: str
    needs: str = ""  # a pattern in the menu's surroundings
    top: str = ""  # the line above the menu where its dialog begins
    topmost: bool = False  # of several such lines the first: what the dialog is about may look like one
    boxed: bool = False  # the dialog shows what it is about in a box of its own
    most_rows: int = 0  # from that line to the menu: a dialog so high leaves rows out without a word; 0: none does
    most_share: float = 0.0  # of the window's rows for the dialog's frame: one so high scrolls inside itself
    choose: str = "arrows"
    priority: int = 50
    score: float = 0.9
    cancel: str = ""  # keys that refuse where no choice does
    refuse: str = ""  # labels that refuse in this menu, instead of the dialect's words
    text_choice: str = ""  # labels that open a text field
    text_keys: str = ""  # keys before the text; "" : the keys of the choice
    text_typed: bool = False  # own words are typed as they are, wherever the highlight stands
    text_reach: str = ""  # keys that lead to it where it is scrolled out of sight
    toggle: str = "space"  # what marks a box in a list where several may be chosen; "digit": its number, or its place
    submit: str = "enter"  # what ends such a list
    text_submit: str = ""  # what ends own words in such a list; "": it takes none
    hotkeys: str = r"\((\w|esc)\)\s*$"
    across: bool = False  # the choices stand side by side
    apart: bool = False  # empty rows may stand between it and the input box at the foot
    wraps_back: bool = False  # a choice that has no room goes on in the column of the pointer
    unpointed: bool = False  # nothing points at the highlighted choice: rows that count are enough
    labels: str = ""  # their labels, where nothing else tells them apart from other words in the row; with the groups
    # `key` and `label` where each has a key of its own: `[y] Approve`
    deaf_s: float = 0.0  # keys that come sooner after it has appeared are ignored by the tool
    permission: bool = False  # it asks whether something may be done: people want to know in which folder
    follow: str = ""  # a choice label that opens a second dialog
    follow_keys: str = ""  # what takes it: `enter?Words_of_the_second_dialog enter`; a second Enter on the next
    # permission would allow that, so it is typed only where those words stand
    refuse_keys: str = ""  # what takes a choice that `refuse` names, wherever the highlight stands


@frozen
class SubjectRule:
    """Where a dialog says what it is about.  With neither `after` nor `first` it stands in the dialog's own box."""

    menus: str  # a pattern for the ids of the menus
    kind: str  # of subject
    when: str = ""  # a pattern in the dialog's text
    after: str = ""  # it begins below this row
    first: str = ""  # it begins in this row, behind what matches
    hang: int = -1  # columns in front of the rows below that one; -1: as many as in front of it
    gutter: str = ""  # a bar that the tool draws in front of every row when there are several
    until: str = ""  # it ends above the last row like this; "": above the menu
    indent: int = 0  # columns that the tool leaves free on either side
    boxed: bool = False
    target: str = ""  # group 1: the file or the address
    elsewhere: bool = False  # the dialog only names it: what it is stands further up, or nowhere


@frozen
class Mark:
    """A pattern in a region that says something about the whole tool: busy, or a state in its window title.

    `background`: something that it has started works on while it rests."""

    pattern: str
    region: str = "footer"
    state: str = "busy"


@frozen
class SecretWords:
    """One language's: a question that has an ask of them, once `unless` is taken out of it, asks for a secret."""

    signs: tuple[str, ...]  # parts of words in small letters; a question without any of them is not looked at further
    asks: tuple[str, ...]
    unless: tuple[str, ...]


@frozen
class Dialect:
    """`idles`: the tool has an input box of its own, so a line or a screen that it does not know is no question yet."""

    name: str
    extends: str = ""
    versions: tuple[str, ...] = ()
    not_versions: tuple[str, ...] = ()  # of another program with the same name
    commands: tuple[str, ...] = ()
    blinking: str = ""  # characters that come and go while nothing happens
    counting: tuple[str, ...] = ()  # stretches that count by themselves
    passing: tuple[str, ...] = ()  # questions that say themselves that they go on without an answer
    noise: tuple[str, ...] = ()  # lines that tell a person nothing: left out of excerpts
    refuse: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    not_secret: tuple[str, ...] = ()  # taken out of a question before `secret` is looked for
    pointers: str = POINTERS
    quiet_programs: tuple[str, ...] = ()  # live displays: they redraw, and wait for nobody
    screen_programs: tuple[str, ...] = ()  # full-screen programs that wait for keys
    marks: tuple[Mark, ...] = ()
    rules: tuple[Rule, ...] = ()
    menus: tuple[MenuRule, ...] = ()
    subjects: tuple[SubjectRule, ...] = ()

    @property
    def says_busy(self) -> bool:
        """The tool says on its screen when it works: what it fetches beside its empty input box is no work."""
        return any(mark.state == "busy" for mark in self.marks)

    @property
    def idles(self) -> bool:
        return any(rule.idle for rule in self.rules)

    @property
    def secret_words(self) -> tuple[SecretWords, ...]:
        """Those of all languages, read when the first question is looked at."""
        return _secret_words()


@cache
def _secret_words() -> tuple[SecretWords, ...]:
    tables = [table["secret"] for table in languages().values()]
    return tuple(SecretWords(**{name: tuple(table[name]) for name in SecretWords.__match_args__}) for table in tables)


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """Patterns are compiled when first used: a session host starts before it needs them."""
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


@lru_cache(maxsize=512)  # labels and rows stand on the screen for many looks
def matches_any(patterns: tuple[str, ...], text: str) -> bool:
    return any(compiled(pattern).search(text) for pattern in patterns)


def steady(dialect: Dialect, text: str) -> str:
    """The text without what blinks and counts by itself."""
    return "\n".join([_steady_row(dialect.blinking, dialect.counting, row) for row in text.split("\n")])


@lru_cache(maxsize=256)
def _steady_row(blinking: str, counting: tuple[str, ...], row: str) -> str:
    row = row.translate(dict.fromkeys(map(ord, blinking), " "))
    for pattern in counting:
        row = compiled(pattern).sub(" ", row)
    return row


def extend(child: Dialect, parent: Dialect) -> Dialect:
    """`child` first, `parent` behind it: of two rules of equal priority the child's wins."""
    lists = "counting noise refuse always secret not_secret quiet_programs screen_programs marks rules menus subjects"
    merged = {name: getattr(child, name) + getattr(parent, name) for name in (*lists.split(), "blinking", "pointers")}
    merged["rules"] = tuple(sorted(merged["rules"], key=lambda rule: -rule.priority))
    merged["menus"] = tuple(sorted(merged["menus"], key=lambda rule: -rule.priority))
    return replace(child, **merged)
