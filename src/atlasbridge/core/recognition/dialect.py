"""A tool's way of asking, as data: what blinks, what says "busy", which lines ask what, and how its menus are chosen.

`parse_dialect` is pure and fails closed: a broken file is refused with its line and the reason.  Reading files, and
which dialect belongs to which tool, is left to `adapters/dialect_files.py`.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from typing import Any

from atlasbridge.core.errors import DialectError
from atlasbridge.core.values import frozen, replace
from atlasbridge.core.vocabulary import languages

REGIONS = ("line", "tail", "footer", "screen", "title")
TYPES = ("yes_no", "confirm_enter", "multiple_choice", "free_text", "unknown")
KINDS = ("command", "edit", "fetch", "plan", "question", "tool", "trust")
# Arrows, angles and hands.  What is a bullet as well points only where more speaks for it.
POINTERS = "❯❱❭❩❥⟩⟫〉》›»>⊳▸▹▶▷►▻⏵‣→⇒⇛⇝⇢⇨⇾⟶↦↪↳➔➙➛➜➝➞➟➠➡➢➣➤➥➦➧➨➩➪➭➮➯➱➲➳➵➸➺➻➼➽➾⮕⮞⯈🠖🡒☛☞👉"
CHOOSE = ("digit", "digit_enter", "digit_shows", "arrows", "hotkey")


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
    """A pattern in a region that says something about the whole tool: busy, or a state in its window title."""

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


def parse_dialect(text: str, where: str, trusted: bool = False) -> Dialect:
    """A dialect from TOML; `where` names the file in errors.

    The patterns of a `trusted` (packaged, tested) text are compiled when first used, which saves a start 30 ms.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DialectError(f"{where}: {error}", "Correct the file, or remove it to use the packaged rules.") from None
    return _Reader(text, where, trusted).dialect(data)


_WORDS = ("refuse", "always", "secret", "not_secret")
_TEXTS = ("name", "extends", "blinking", "pointers")
_LISTS = ("versions", "commands", "counting", "noise", "passing", "quiet_programs", "screen_programs")
_TOP: dict[str, type] = {**dict.fromkeys(_TEXTS, str), **dict.fromkeys(_LISTS, tuple)}
_PATTERNS = (
    *("pattern", "needs", "unless", "text_choice", "hotkeys", "follow", "programs", "top", "labels", "refuse", "menus"),
    *("when", "after", "first", "until", "target"),
)


class _Reader:
    """Checks every setting and says which one is wrong, where, and why."""

    def __init__(self, text: str, where: str, trusted: bool) -> None:
        self.source = text.splitlines()
        self.where = where
        self.trusted = trusted

    def fail(self, needle: str, reason: str, skip: int = 0) -> DialectError:
        lines = [at for at, content in enumerate(self.source, 1) if content.lstrip().startswith(needle)]
        place = f"{self.where}, line {lines[: skip + 1][-1]}" if lines else self.where
        return DialectError(f"{place}: {reason}", "Correct the file, or remove it to use the packaged rules.")

    def dialect(self, data: dict[str, Any]) -> Dialect:
        known = {*_TOP, "words", "busy", "title", "rule", "menu", "subject"}
        for key in data:
            if key not in known:
                raise self.fail(key, f"unknown setting {key!r}; known are {', '.join(sorted(known))}")
        if not isinstance(data.get("name"), str) or not data["name"]:
            raise self.fail("name", "`name` must be a text")
        values: dict[str, Any] = {key: self._typed(data, key, kind) for key, kind in _TOP.items() if key in data}
        words = data.get("words", {})
        for key in words:
            if key not in _WORDS:
                raise self.fail(key, f"unknown setting words.{key!r}")
            values[key] = self._patterns(self._typed(words, key, tuple), key)
        for key in ("counting", "noise", "passing"):
            self._patterns(values.get(key, ()), key)
        values["marks"] = (*self._tables(data, "busy", Mark), *self._tables(data, "title", Mark, region="title"))
        values["rules"] = self._tables(data, "rule", Rule)
        values["menus"] = self._tables(data, "menu", MenuRule)
        values["subjects"] = self._tables(data, "subject", SubjectRule)
        return Dialect(**values)

    def _typed(self, table: dict[str, Any], key: str, kind: type) -> Any:
        value = table[key]
        if kind is tuple and isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        if kind is not tuple and isinstance(value, kind):
            return value
        raise self.fail(key, f"`{key}` must be {'a list of texts' if kind is tuple else 'a text'}")

    def _patterns(self, patterns: tuple[str, ...], key: str) -> tuple[str, ...]:
        for pattern in patterns:
            self._check_pattern(pattern, key, key, 0)
        return patterns

    def _check_pattern(self, pattern: str, name: str, needle: str, skip: int) -> None:
        if self.trusted:
            return
        try:
            compiled(pattern)
        except re.error as error:
            raise self.fail(needle, f"`{name}` is not a valid pattern: {error}", skip) from None

    def _tables(self, data: dict[str, Any], section: str, kind: type[Any], **fixed: Any) -> tuple[Any, ...]:
        tables = data.get(section, [])
        if not isinstance(tables, list):
            raise self.fail(f"[{section}]", f"write [[{section}]] with double brackets")
        return tuple(self._table(table, section, number, kind, fixed) for number, table in enumerate(tables))

    def _table(self, table: dict[str, Any], section: str, number: int, kind: type[Any], fixed: dict[str, Any]) -> Any:
        needle = f"[[{section}]]"
        kinds = kind.__annotations__
        for key, value in table.items():
            if key not in kinds:
                raise self.fail(needle, f"unknown setting {key!r} in [[{section}]] number {number + 1}", number)
            wanted = {"str": str, "bool": bool, "int": int, "float": (int, float)}[kinds[key]]
            if not isinstance(value, wanted):  # type: ignore[arg-type]
                raise self.fail(needle, f"`{key}` has the wrong kind of value: {value!r}", number)
        for key in _PATTERNS:
            if table.get(key):
                self._check_pattern(table[key], key, needle, number)
        if table.get("follow") and "?" not in table.get("follow_keys", ""):
            raise self.fail(needle, "`follow_keys` must say what its second dialog shows: `enter?Words enter`", number)
        for key, allowed in (("region", REGIONS), ("type", TYPES), ("choose", CHOOSE), ("kind", KINDS)):
            if key in table and table[key] not in allowed:
                raise self.fail(needle, f"`{key}` is {table[key]!r}; allowed are {', '.join(allowed)}", number)
        required = ("id", "pattern", "type", "menus", "kind")
        lacking = ", ".join(name for name in required if name in kinds and name not in table)
        if lacking:
            raise self.fail(needle, f"[[{section}]] number {number + 1} lacks {lacking}", number)
        return kind(**{**fixed, **table})
