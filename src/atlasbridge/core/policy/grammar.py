"""The grammar of known programs, and which of their arguments a wildcard can match.

`programs.toml` lists what is harmless, never what is dangerous: the subcommands of each program, its options with the
kinds of their values, and the kinds of its other arguments. `read_words` returns for every word of a command what a
rule must contain to allow it. A word that is not in the grammar must be written out in full.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from atlasbridge.core.patterns import lazy
from atlasbridge.core.policy.pattern import absolute
from atlasbridge.core.values import field, frozen, replace

_DATA: dict[str, Any] = tomllib.loads(Path(__file__).with_name("programs.toml").read_text(encoding="utf-8"))
PROGRAMS: dict[str, dict[str, Any]] = _DATA["program"]
SHELLS: frozenset[str] = frozenset(_DATA["shells"])
INTERPRETERS: frozenset[str] = frozenset(_DATA["interpreters"])
DESTRUCTIVE: frozenset[str] = frozenset(_DATA["destructive"])
INERT: frozenset[str] = frozenset(_DATA["inert"])
EFFECTS: dict[str, dict[str, list[str]]] = _DATA["effects"]
_CLOSED: frozenset[str] = frozenset(_DATA["closed"]) | SHELLS
_TELLING: frozenset[str] = frozenset(_DATA["telling"])
_OTHER_NAMES: dict[str, str] = _DATA["other_names"]
_FED = frozenset({"xargs", "parallel", "watch"})  # they run more than their arguments show


@frozen
class Need:
    """What a rule must contain for one word of a command.

    `why` is "" for a word that any wildcard can match; otherwise it says why a wildcard cannot. `part`: a word with a
    wildcard in it can (`test*`). `host`: such a word must name the host. `does`: it is a subcommand.
    """

    why: str = ""
    part: bool = False
    host: bool = False
    does: bool = False

    def is_met_by(self, pattern: str) -> bool:
        """Whether this part of a rule, which contains a wildcard, can match the word."""
        if not self.why:
            return True
        if not self.part or not pattern.strip("*"):
            return False
        return not self.host or _HOST.match(pattern) is not None


_HOST = lazy(r"https?://[^*/]+/")


FREE = Need()


@frozen
class Reading:
    """`needs`: one per word. `grammar`: the section of `programs.toml`, "" without one. `head`: how many words
    determine the action (program, subcommands, targets)."""

    needs: tuple[Need, ...]
    grammar: str = ""
    head: int = 1


@frozen
class Option:
    name: str
    kind: str = ""  # the kind of its value; "" if it takes none
    attached: bool = False  # its value can only follow a "="
    must: bool = False  # the value cannot be omitted
    frees: bool = False  # it replaces the first word


@frozen
class Grammar:
    """One program or subcommand of `programs.toml`."""

    name: str
    options: dict[str, Option] = field(default_factory=dict)
    words: tuple[str, ...] = ()  # kinds; the last one has "*" for any number
    dashes: bool = False  # whether "--" ends the options
    behind: dict[str, Option] | None = None  # options after "--", if another program parses them
    reads: bool = False  # it only shows something, so a wildcard can match its name
    single: bool = False  # options have one dash and whole words, like those of `find`
    first: bool = False  # its options come before its words
    apart: bool = False  # a letter never takes the rest of its word as its value: `-tc x` is `-t -c x`
    match: tuple[str, ...] = ()
    no_match: tuple[str, ...] = ()


# the working folder of a command


@frozen
class WorkFolder:
    """`folder`: where the tool works. `lost`: a `cd` could have left it. `below`: folders inside it to which a `cd`
    could have led. `leads`: resolves a path with its links, "" if that is unknown; None: only names are known."""

    folder: str = ""
    lost: bool = False
    below: tuple[str, ...] = ()
    leads: Callable[[str], str] | None = None

    def moved(self, went: Sequence[str]) -> WorkFolder:
        """After these `cd` commands, each of which could have been skipped."""
        below: tuple[str, ...] = ()
        for name in went:
            if not is_inside(name, replace(self, below=below)) or len(below) > _MOST_FOLDERS:
                return replace(self, lost=True)
            below += tuple(absolute(name, base, "") for base in (self.folder, *below))
        return replace(self, below=tuple(dict.fromkeys(below)))


_MOST_FOLDERS = 16


def program_of(word: str) -> str:
    """The last path component; a versioned interpreter is mapped to that interpreter."""
    name = word.rsplit("/", 1)[-1].lstrip("=")
    for base in ("python", "pypy", "perl", "ruby", "node", "php", "lua", "pip"):
        if name.startswith(base) and name[len(base) :].replace(".", "").isdigit():
            return "python" if base == "pypy" else base
    return _OTHER_NAMES.get(name, name)


# kinds of words

_ABOVE = lazy(r"(?:^|/)\.\.(?:/|$)")


def _up_to(mark: str) -> str:
    """A regular expression between two marks. Some programs treat a mark in brackets as a character and some as the
    end, so brackets with a mark, or with an ambiguous content, do not match."""
    return rf"(?:[^\[\\\n{mark}]|\\[^\n]|\[\^?(?:\[:[a-z]+:\]|[^\[\]\\\n{mark}])+\])*"


_SED_PLACE = rf"(?:\d+|\$|/{_up_to('/')}/I?)"
_SED_SWAPS = "|".join(rf"{mark}{_up_to(mark)}{mark}(?:[^\\\n{mark}]|\\[^\n])*{mark}" for mark in ("/", r"\|", "#", ","))
_SED_COMMAND = rf"(?:{_SED_PLACE}(?:,(?:\+?\d+|{_SED_PLACE}))?\s*)?(?:!\s*)?(?:[pdq=]|s(?:{_SED_SWAPS})[gpiI\d]*)"
_SED = lazy(rf"[\s;]*{_SED_COMMAND}(?:[\s;]+{_SED_COMMAND})*[\s;]*")  # unambiguous, so that matching stays fast
_AWK = lazy(
    rf"(?P<text>\"(?:[^\"\\\n]|\\[^\n])*\")|(?P<pattern>/(?!/){_up_to('/')}/)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<mark>>=|<=|==|!=|\|\||&&|\+\+|--|[+\-*%]=|[{}()\[\];,$!~<+\-*%^?:=/])|(?P<blank>\s+)"
)
_AWK_NAMES: frozenset[str] = frozenset(_DATA["awk"])
_AWK_DIVIDED = ("name", "number", "]", "NR", "NF", "FNR")  # only a division can follow these
_AWK_VALUES = {*_AWK_DIVIDED, *_AWK_NAMES, "text", ")", "$", "++", "--"}  # a division can follow these
_JQ_LOADS = lazy(r"\b(?:import|include|env|ENV|modulemeta|input_filename|get_search_list|getpath_env)\b|\$__")
_URL = lazy(r"https?://[A-Za-z0-9.-]+(?::\d{1,5})?(?:/[\w./~%+,;:@!$'()*=&?#-]*)?")


def is_inside(word: str, place: WorkFolder) -> bool:
    """Whether the path is inside the folder, both by its name and after links are resolved."""
    return _is_named_inside(word, place) and not _leads_out(word, place)


def _is_named_inside(word: str, place: WorkFolder) -> bool:
    if not word or word[0] in "-@~+" or ":" in word or _ABOVE.search(word):
        return False
    if word.startswith("/"):
        folder = absolute(place.folder, "", "")
        return folder not in ("", "/") and not word.startswith("//") and f"{word}/".startswith(f"{folder}/")
    return not place.lost


def _leads_out(word: str, place: WorkFolder) -> bool:
    """Whether a link on the path leads out of the folder, or could do so."""
    folder = absolute(place.folder, "", "")
    if place.leads is None or not folder:
        return False
    top = place.leads(folder)
    found = {place.leads(absolute(word, base, "")) for base in (folder, *place.below)}
    return not top or not all(f"{path}/".startswith(f"{top}/") for path in found)


def _is_revision(word: str, place: WorkFolder) -> bool:
    """A commit, a range, a path, or a path in a commit, as git commands accept them."""
    plain = word.lstrip("@^").replace(":", "/")
    return word[:1] not in ("-", "/", "~") and ":/" not in word and is_inside(plain.lstrip("/~") or "x", place)


def _is_test(word: str, place: WorkFolder) -> bool:
    """A test file, or a test in it: `tests/test_a.py::test_b[c]`."""
    path, _, inside = word.partition("::")
    return is_inside(path, place) and not inside.startswith("-")


def _is_test_file(word: str, place: WorkFolder) -> bool:
    """A file that another program reads: it must look like a test file and nothing else."""
    looks = "/" in word or "." in word
    return looks and ("test" in word.lower() or "spec" in word.lower()) and "=" not in word and is_inside(word, place)


def _is_awk(word: str, place: WorkFolder) -> bool:
    """An awk program without `system`, `getline`, pipes, files and extensions: only names that compute and print."""
    at, before = 0, ""
    while at < len(word):
        found = _AWK.match(word, at)
        if found is None or (found.lastgroup == "name" and not _is_awk_name(word, found)):
            return False
        text, sort = found.group(), str(found.lastgroup)
        if (sort == "pattern" and before in _AWK_VALUES) or (text == "/" and before not in _AWK_DIVIDED):
            return False  # ambiguous between a division and a pattern, which can hide what follows
        if sort != "blank":
            before = text if sort == "mark" or text in _AWK_NAMES else sort
        at = found.end()
    return True


def _is_awk_name(word: str, found: re.Match[str]) -> bool:
    """A variable is in lower case; a called name must be one of the functions that only compute."""
    name = found.group()
    called = word[found.end() :].lstrip()[:1] == "("
    return name in _AWK_NAMES or (name == name.lower() and not called and name not in ("getline", "func", "function"))


KINDS: dict[str, Callable[[str, WorkFolder], bool]] = {
    "path": is_inside,
    "go_package": lambda word, place: is_inside(word.replace("...", "x"), place),
    "find": lambda word, place: word in ("!", "(", ")") or is_inside(word, place),
    "revision": _is_revision,
    "test": _is_test,
    "test_file": _is_test_file,
    "awk": _is_awk,
    "sed": lambda word, place: _SED.fullmatch(word) is not None,
    "jq": lambda word, place: _JQ_LOADS.search(word) is None,
    "url": lambda word, place: _URL.fullmatch(word) is not None,
    "text": lambda word, place: True,
    "pattern": lambda word, place: True,
}
_NAMED = ("target", "url", "computer")  # a bare wildcard never matches these, because they determine the action
PATTERNS: dict[str, str] = {name: table["is"] for name, table in _DATA["kind"].items() if "is" in table}
_SAYS: dict[str, str] = {name: table["says"] for name, table in _DATA["kind"].items()}


@lru_cache(maxsize=512)
def _expression(source: str) -> re.Pattern[str]:
    return re.compile(source)


def _is_kind(kind: str, word: str, place: WorkFolder) -> bool:
    if kind in KINDS:
        return KINDS[kind](word, place)
    if kind in PATTERNS:
        return _expression(PATTERNS[kind]).fullmatch(word) is not None
    return word in kind.split("|")


def _need(kind: str, word: str, place: WorkFolder, program: str) -> Need:
    if not _is_kind(kind, word, place):
        if place.leads is not None and _is_kind(kind, word, replace(place, leads=None)):
            return Need(f"{word!r} leads out of the folder, or AtlasBridge cannot look where it leads")
        return Need(f"{word!r} is not one of the {say_kind(kind)} that {program} takes here")
    if kind in _NAMED:
        return Need(f"{word!r} tells {program} what to do, so that a rule must name it", part=True, host=kind == "url")
    return FREE


def say_kind(kind: str) -> str:
    return _SAYS.get(kind, f"words {kind.replace('|', ', ')}")


# reading the table


@lru_cache(maxsize=512)
def find_grammar(name: str) -> Grammar | None:
    table = PROGRAMS.get(name)
    if table is None:
        return None
    if "like" in table:
        table = {**PROGRAMS[table["like"]], **{key: value for key, value in table.items() if key != "like"}}
    options = _read_options(table.get("options", ""))
    behind = _read_options(table["behind"]) if "behind" in table else None
    return Grammar(
        name,
        {option.name: option for option in options if option.name != "--"},
        tuple(str(table.get("words", "")).split()),
        behind is not None or any(option.name == "--" for option in options),
        None if behind is None else {option.name: option for option in behind},
        bool(table.get("reads", False)),
        bool(table.get("single", False)),
        bool(table.get("first", False)),
        bool(table.get("apart", False)),
        tuple(table.get("match", ())),
        tuple(table.get("no_match", ())),
    )


def _read_options(text: str) -> list[Option]:
    found = []
    for token in text.split():
        if token.startswith("@"):
            found += _read_options(_DATA["options"][token[1:]])
            continue
        name, _, kind = token.partition("=")
        attached, must = name.endswith("["), kind.startswith("=")
        found.append(Option(name.rstrip("[!"), kind.strip("=]"), attached or must, must, name.endswith("!")))
    return found


@lru_cache(maxsize=512)
def contradictions(program: str) -> tuple[str, ...]:
    """The examples of this program and its subcommands that contradict the table. They are checked when the program is
    first judged; if there are any, no wildcard matches its arguments."""
    grammars = [find_grammar(name) for name in PROGRAMS if name.partition(" ")[0] == program]
    return tuple(wrong for grammar in grammars if grammar is not None for wrong in _check_examples(grammar))


def _check_examples(grammar: Grammar) -> list[str]:
    here = WorkFolder("/home/me/src")
    wrong = [f"{text}: {doubt}" for text in grammar.match if (doubt := first_doubt(text.split(), here))]
    return wrong + [f"{text}: not asked" for text in grammar.no_match if not first_doubt(text.split(), here)]


def first_doubt(words: Sequence[str], place: WorkFolder) -> str:
    """Why a rule with this program, its subcommands, its first target and `**` would not allow these words."""
    reading = _read(words, place)
    if not reading.grammar:
        return f"{program_of(words[0])} has no grammar"
    targets = 0
    for need in reading.needs:
        targets += need.part
        if need.why and not need.does and (not need.part or targets > 1):
            return need.why
    return ""


# reading a command


def read_words(words: Sequence[str], place: WorkFolder) -> Reading:
    """Returns what a rule must contain for each word of this command."""
    reading = _read(words, place)
    wrong = contradictions(reading.grammar.partition(" ")[0]) if reading.grammar else ()
    return _all(words, f"the table of programs contradicts itself: {wrong[0]}") if wrong else reading


def _read(words: Sequence[str], place: WorkFolder) -> Reading:
    name = program_of(words[0])
    inner = _inner_program(name, words)
    if inner is not None:
        return _behind(words, inner, place)
    if name in WRAPPERS:
        return _all(words, f"{name} runs what stands behind it")
    if name in PROGRAMS:
        return _Reader(words, place).read(name)
    if name in _CLOSED:
        return _read_closed(name, words)
    return Reading((FREE, *(_telling_need(name, word) for word in words[1:])))


def _all(words: Sequence[str], why: str) -> Reading:
    return Reading((FREE, *(Need(why) for _ in words[1:])))


def _behind(words: Sequence[str], start: int, place: WorkFolder) -> Reading:
    """Everything before the inner program must be written out; after it, the grammar of the inner program applies."""
    inner = _read(words[start:], place)
    written = Need(f"{program_of(words[0])} runs what stands behind it", does=True)
    needs = (FREE, *(written for _ in range(1, start + 1)), *inner.needs[1:])
    return Reading(needs[: len(words)], inner.grammar, start + inner.head)


def _inner_program(name: str, words: Sequence[str]) -> int | None:
    """The position of the program that this one runs, if it runs another one and its own arguments are unambiguous."""
    for runner in _DATA["runners"]:
        prefix = runner.split()
        if [name, *words[1 : len(prefix)]] == prefix and len(words) > len(prefix):
            start = len(prefix)
            known = program_of(words[start]) in PROGRAMS or runner == "python -m"
            return start if known and not words[start].startswith("-") else None
    wrapper = WRAPPERS.get(name)
    if wrapper is None or name in _FED:
        return None
    start = 1
    while start < len(words) and (words[start].startswith("-") or "=" in words[start]):
        start += 2 if words[start] in wrapper.values else 1
    start += wrapper.skip
    return start if start < len(words) else None


_SCRIPT_RUNNERS = (SHELLS - {"busybox"}) | {"python", "node", "perl", "ruby", "php", "lua", "tsx", "ts-node", "Rscript"}


def _read_closed(name: str, words: Sequence[str]) -> Reading:
    """It runs its arguments, or they are code. If the rule names a script in full, the arguments of the script are
    free."""
    if name in _SCRIPT_RUNNERS and len(words) > 1 and words[1][:1] not in ("-", "+"):
        return Reading((FREE, Need(f"{name} runs it"), *(FREE for _ in words[2:])))
    return _all(words, f"{name} can run or change anything with it")


def _telling_need(name: str, word: str) -> Need:
    """For an unknown program: finds options whose name says that they run something, and names of programs that do,
    because the program could run its arguments."""
    parts = word.partition("=")[0].lower().lstrip("-").split("-") if word.startswith("--") else []
    if parts and parts[0] != "no" and not _TELLING.isdisjoint(parts):
        return Need(f"{word!r} says that it runs or loads something")
    alone = "/" not in word or word.startswith(("/bin/", "/usr/", "/sbin/"))
    if name not in INERT and alone and program_of(word) in _RUNNING:
        return Need(f"{name} may run {word!r}")
    return FREE


def _may_be(word: str, name: str) -> bool:
    """Whether this word could be that option, alone, with its value, or in a bundle."""
    if name.startswith("--"):
        return word.partition("=")[0] == name
    return word[:1] == "-" and word[:2] != "--" and name[1:] in word[1:]


class _Reader:
    """Reads one command of a program that has a grammar."""

    def __init__(self, words: Sequence[str], place: WorkFolder) -> None:
        self._words = words
        self._place = place
        self._needs: list[Need] = [FREE]
        self._head = 1
        self._kinds: list[str] = []
        self._all_kinds = 0
        self._behind = False  # "--" was read
        self._unknown = ""  # set after an unknown option, which could take the following words

    def read(self, name: str) -> Reading:
        grammar = find_grammar(name)
        assert grammar is not None
        self._use(grammar)
        while len(self._needs) < len(self._words):
            self._step(self._words[len(self._needs)])
        return Reading(tuple(self._needs), self._grammar.name, self._head)

    def _step(self, word: str) -> None:
        if self._unknown:
            self._needs.append(Need(self._unknown))
        elif self._behind and self._grammar.behind is None:
            self._word(word)
        elif word == "--" and self._grammar.dashes and not self._behind:
            self._behind = True
            self._needs.append(FREE)
        elif word[:1] == "-" and len(word) > 1:
            self._option(word)
        elif not self._is_subcommand(word):
            self._word(word)

    def _is_subcommand(self, word: str) -> bool:
        following = find_grammar(f"{self._grammar.name} {word}") if " " not in word else None
        if following is None or self._behind or len(self._kinds) != self._all_kinds:
            return False
        # earlier options of the program itself no longer matter; the subcommand's own follow
        self._append(
            FREE
            if following.reads
            else Need(f"{word!r} tells {self._words[0]} what to do, so that a rule must name it", does=True)
        )
        self._head = len(self._needs)
        self._use(following)
        return True

    def _use(self, grammar: Grammar) -> None:
        """An option that replaces the first word can be anywhere, even after that word."""
        self._grammar = grammar
        self._kinds = list(grammar.words)
        first = self._kinds[0] if self._kinds else ""
        freeing = [one.name for one in grammar.options.values() if one.frees or one.kind == first in ("pattern", "sed")]
        if any(_may_be(word, name) for word in self._words[1:] for name in freeing):
            self._kinds.pop(0)
        self._all_kinds = len(self._kinds)

    def _word(self, word: str) -> None:
        if not self._kinds:
            self._stop(f"{word!r} is not known of {self._grammar.name}")
            return
        kind = self._kinds[0].rstrip("*")
        if not self._kinds[0].endswith("*"):
            self._kinds.pop(0)
        self._append(_need(kind, word, self._place, self._grammar.name))
        self._behind = self._behind or self._grammar.first

    def _append(self, need: Need) -> None:
        self._needs.append(need)
        if need.part:
            self._head = len(self._needs)

    def _stop(self, why: str) -> None:
        """Everything after it can have any meaning."""
        self._needs.append(Need(why))
        self._unknown = why

    def _option(self, word: str) -> None:
        options = self._grammar.behind if self._behind and self._grammar.behind is not None else self._grammar.options
        name, equals, value = word.partition("=")
        option = options.get(name if equals else word)
        if option is not None:
            self._known_option(option, value if equals else None)
        elif word[1:].isdigit() and "-NUMBER" in options:
            self._needs.append(FREE)
        elif word.startswith("--") or self._grammar.single:
            self._stop(f"{name!r} is not a known option of {self._grammar.name}")
        else:
            self._bundle(word, options)

    def _known_option(self, option: Option, value: str | None) -> None:
        if value is not None and not option.kind:
            self._stop(f"{option.name!r} of {self._grammar.name} takes no value")
        elif value is not None:
            # for a short option, the sign is part of its value
            sign = "" if option.name.startswith("--") or self._grammar.single else "="
            self._append(self._value(option, sign + value))
        elif option.must:
            self._stop(f"{option.name!r} of {self._grammar.name} needs its value behind a =")
        else:
            self._append(FREE)
            if option.kind and not option.attached and len(self._needs) < len(self._words):
                self._separate_value(option, self._words[len(self._needs)])

    def _separate_value(self, option: Option, value: str) -> None:
        """Some parsers take a word with a dash as the value, and some as the next option."""
        if option.kind != "pattern" and value[:1] == "-" and len(value) > 1 and not value[1].isdigit():
            self._stop(f"{value!r} after {option.name} is a value for some programs and an option for others")
        else:
            self._append(self._value(option, value))

    def _value(self, option: Option, value: str) -> Need:
        return _need(option.kind, value, self._place, f"{self._grammar.name} {option.name}")

    def _bundle(self, word: str, options: dict[str, Option]) -> None:
        """Letters after one dash; the first that takes a value takes the rest, or the next word."""
        for at, letter in enumerate(word[1:], 1):
            option = options.get(f"-{letter}")
            if option is None:
                self._stop(f"'-{letter}' is not a known option of {self._grammar.name}")
                return
            if option.kind:
                rest = word[at + 1 :]
                if rest and self._grammar.apart and not rest.isdigit():
                    self._stop(f"{self._grammar.name} reads {rest!r} as further options")
                elif rest:
                    self._append(self._value(option, rest))
                else:
                    self._known_option(option, None)
                return
        self._needs.append(FREE)


# wrappers: programs that run the program named after their own arguments


@frozen
class Wrapper:
    values: tuple[str, ...] = ()  # its options that take a value
    skip: int = 0  # its own words before the program
    plain: str = ""  # the options with which it changes nothing that matters to a rule; "": it always does


WRAPPERS = {
    name: Wrapper(tuple(table.get("values", ())), table.get("skip", 0), table.get("plain", ""))
    for name, table in _DATA["wrapper"].items()
}
_RUNNING = (SHELLS | INTERPRETERS | frozenset(WRAPPERS) | frozenset(_DATA["runs"]) | DESTRUCTIVE) - {
    *("op", "go", "ed", "ex", "view", ".")
}
_OWN_VALUE = lazy(r"\w+(\.\d+)?")  # a number, a time, a signal


def unwrap(words: Sequence[str]) -> tuple[str, ...] | None:
    """The command inside a transparent wrapper with only known options; None if there is none."""
    name = program_of(words[0])
    wrapper = WRAPPERS.get(name)
    if wrapper is None or not wrapper.plain:
        return None
    place, skip = 1, wrapper.skip
    while place < len(words) and words[place].startswith("-"):
        if not _expression(wrapper.plain).fullmatch(words[place]):
            return None
        takes = words[place] in wrapper.values
        if takes and not _OWN_VALUE.fullmatch("".join(words[place + 1 : place + 2])):
            return None
        place += 2 if takes else 1
    if not all(_OWN_VALUE.fullmatch(word) for word in words[place : place + skip]):
        return None
    if name == "env" and place < len(words) and "=" in words[place]:
        return None
    inner = tuple(words[place + skip :])
    return inner if inner and not inner[0].startswith("-") else None


def reads_elsewhere(words: Sequence[str]) -> bool:
    """Whether it runs code from a pipe or a terminal, which is not in its arguments."""
    name = program_of(words[0])
    runs = name in SHELLS or (name in INTERPRETERS and name not in PROGRAMS)
    return name in _FED or (runs and all(word.startswith("-") and word != "--version" for word in words[1:]))


# descriptions


def describe_grammar(name: str, most: int = 8) -> str:
    """What a wildcard after it matches: kinds of words, and at most `most` options by name."""
    grammar = find_grammar(name)
    if grammar is None:
        return "any further words"
    kinds = [say_kind(kind.rstrip("*")) for kind in grammar.words if kind.rstrip("*") not in _NAMED]
    options = [_say_option(option) for option in grammar.options.values()]
    more = f" and {len(options) - most} more" if len(options) > most else ""
    said = [f"these options: {' '.join(options[:most])}{more}"] if options else []
    below = [
        key.rpartition(" ")[2] for key in PROGRAMS if key.rpartition(" ")[0] == name and PROGRAMS[key].get("reads")
    ]
    said += [f"these subcommands: {' '.join(below)}"] if below else []
    return " and ".join([*dict.fromkeys(kinds), *said]) or "no further words"


def _say_option(option: Option) -> str:
    if not option.kind:
        return option.name
    value = option.kind if "|" in option.kind or option.kind not in _SAYS else option.kind.upper()
    return f"{option.name}[={value}]" if option.attached else f"{option.name} {value}"
