"""Finds every command that a line could run, for `deny` and `ask`: raw, unwrapped, nested, expanded and decoded.

It reads generously: a form that never runs only causes a question or a denial, but a missed form would be a hole. It
follows variables that the same line sets to plain text, empty and positional ones, `$IFS`, defaults, braces, `echo` and
decoders in a substitution. Everything else is represented by `UNKNOWN` in the word.
"""

from __future__ import annotations

from binascii import Error as BadBase64
from binascii import a2b_base64, unhexlify
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, product

from atlasbridge.core.patterns import lazy
from atlasbridge.core.policy.grammar import INERT, INTERPRETERS, SHELLS, program_of
from atlasbridge.core.policy.pattern import UNKNOWN
from atlasbridge.core.policy.shell import Node, Parser, decode_ansi, has_comment, nodes, unescape_bare, unescape_double
from atlasbridge.core.values import frozen

DEPTH = 6
MOST = 600
PARSED = 48  # texts to parse; more of them is an attack on the time of a verdict
_STRINGS = lazy(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|`([^`]*)`|q[qxw]?[{(/]([^})/]*)[})/]")
_TOKENS = lazy(r"'[^']*'?|\"(?:[^\"\\]|\\.)*\"?|\\.|[;&|\n(){}`<>]|\s+|[^\s;&|(){}`<>'\"\\]+")
_GIT_RUNS = lazy(r"^(--exec|-x|-c|--config-env|--upload-pack|--receive-pack|--[a-z]+-filter|--extcmd|--tool|-u)(=|$)")
_CODE_OPTION = lazy(
    r"^(-[a-zA-Z]*[ceErRSP]|--(command|eval|exec|run|call|print|rsh|to-command|checkpoint-action|use-compress-program"
    r"|info-script|pager|split-string|shell|ProxyCommand|diff-cmd|editor-cmd|pre|compress-program|script|init-command"
    r"|batch|expression|require|filter)[a-z-]*)"
)


class Forms:
    def __init__(self, parse: Parser) -> None:
        self._parse = parse
        self._seen: set[str] = set()
        self.found: dict[tuple[str, ...], None] = {}
        self.overflow = False  # there was more than could be examined
        self.files: list[str] = []  # files that are read or written by redirections

    def of_text(self, text: str, depth: int = 0) -> Forms:
        text = text.replace("\x00", "")
        if text in self._seen or not text.strip():
            return self
        if depth > DEPTH or len(self.found) > MOST or len(self._seen) >= PARSED:
            self.overflow = True
            return self
        self._seen.add(text)
        if "\\\n" in text:  # a shell joins these lines before anything else
            self.of_text(text.replace("\\\n", ""), depth + 1)
        tree = self._parse(text)
        if tree is None:
            self._of_tokens(text, depth)
        else:
            self._of_tree(tree, text, depth)
        return self

    def _of_tree(self, tree: Node, text: str, depth: int) -> None:
        names = find_names(tree)
        if has_comment(tree):  # shells differ about where a comment ends
            for line in text.splitlines():
                self.of_text(line.rstrip("\\"), depth + 1)
        for node in nodes(tree):
            match node.get("Type"):
                case "CallExpr":
                    for assign in node.get("Assigns") or ():
                        self._of_value(assign, names, depth)
                    for words in expand_words(node.get("Args") or (), names):
                        self.add(words, depth)
                case "DeclClause":
                    for assign in node.get("Args") or ():
                        self._of_value(assign, names, depth)
                case "BinaryCmd" if node.get("Op") in ("|", "|&"):
                    self._of_pipe(node, names, depth)
            if node.get("Redirs"):
                self._of_redirects(node, names, depth)

    def _of_value(self, assign: Node, names: Names, depth: int) -> None:
        """A variable's value can be run later (`PAGER`, `GIT_SSH_COMMAND`, `PROMPT_COMMAND`, `$x`)."""
        if isinstance(assign.get("Value"), dict):
            for text in expand(assign["Value"], names)[:4]:
                text = text.replace("\x1f", " ")
                if " " in text:
                    self.of_text(text, depth + 1)

    def _of_pipe(self, node: Node, names: Names, depth: int) -> None:
        """The input of a shell is a script; the input of xargs is arguments."""
        said = say_pipeline(node["X"], names)
        if said is None:
            return
        for words in _calls(node["Y"], names):
            self._feed(words, said, depth)

    def _feed(self, words: tuple[str, ...], said: str, depth: int) -> None:
        runners = [
            place for place, word in enumerate(words) if program_of(word) in (*SHELLS, "source", ".", "at", "batch")
        ]
        if runners or any(program_of(word) in INTERPRETERS for word in words[:3]):
            self.of_text(said, depth + 1)
            self._of_code(said, depth)
        if any(program_of(word) in ("xargs", "parallel") for word in words):
            given = tuple(said.split())
            self.add((*words, *given), depth)
            self.add(tuple(word.replace("{}", said.strip()).replace("%", said.strip()) for word in words), depth)
            self.of_text(said, depth + 1)

    def _of_redirects(self, node: Node, names: Names, depth: int) -> None:
        for redirect in node["Redirs"]:
            if redirect.get("Hdoc"):
                text = document(redirect, names)
            elif redirect.get("Op") == "<<<":
                text = next(iter(expand(redirect.get("Word") or {}, names)), "").replace("\x1f", " ")
            else:
                self.files += [path.replace("\x1f", " ") for path in expand(redirect.get("Word") or {}, names)]
                continue
            for words in _calls(node, names):
                self._feed(words, text, depth)

    def add(self, words: tuple[str, ...], depth: int) -> None:
        """Adds one command as it is, and everything that it can run in turn."""
        if words in self.found or not words:
            return
        if depth > DEPTH or len(self.found) > MOST:
            self.overflow = True
            return
        self.found[words] = None
        if " " in words[0] or not words[0]:
            self.of_text(words[0], depth + 1)
        name = program_of(words[0])
        if name in ("eval", "alias", "trap"):
            self._of_eval(name, words, depth)
        elif name == "git":
            self._of_git(words, depth)
        elif name in INERT:
            self._of_inert(name, words, depth)
        else:
            self._of_runner(name, words, depth)

    def _of_eval(self, name: str, words: tuple[str, ...], depth: int) -> None:
        if name == "eval":
            self.of_text(" ".join(words[1:]), depth + 1)
        for word in words[1:]:
            self.of_text(word.split("=", 1)[1] if name == "alias" and "=" in word else word, depth + 1)

    def _of_git(self, words: tuple[str, ...], depth: int) -> None:
        """Git runs the values of some options, settings and subcommands; a commit message is only text."""
        self._without_globals(words, depth)
        previous = ""
        for place, word in enumerate(words):
            value = word.split("=", 1)[1] if "=" in word else word
            if value.startswith("!"):
                self.of_text(value[1:], depth + 1)
            if _GIT_RUNS.match(word) and "=" in word:
                self.of_text(value, depth + 1)
            if _GIT_RUNS.match(previous):
                self.of_text(value.lstrip("!"), depth + 1)
            if word.startswith("ext::"):
                self.of_text(word[5:], depth + 1)
            if (previous, word) in (("bisect", "run"), ("submodule", "foreach"), ("for-each-repo", "--")):
                self.add(tuple(words[place + 1 :]), depth + 1)
                self.of_text(" ".join(words[place + 1 :]), depth + 1)
            if previous.startswith("alias.") or previous in _GIT_SETTINGS:
                self.of_text(word.lstrip("!"), depth + 1)
            previous = word

    def _without_globals(self, words: tuple[str, ...], depth: int) -> None:
        """Adds the form without global options: `git -C x -c y=z push` is `git push`."""
        place = 1
        while place < len(words) and words[place].startswith("-"):
            place += 2 if words[place] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path") else 1
        if place > 1:
            self.add((words[0], *words[place:]), depth + 1)

    def _of_inert(self, name: str, words: tuple[str, ...], depth: int) -> None:
        if name in ("docker", "podman", "kubectl") and {"run", "exec", "debug"} & set(words[1:4]):
            for place in range(3, len(words)):
                self._suffix(words[place:], depth)
        if name in ("npm", "pnpm", "yarn", "cargo", "go") and {"exec", "x", "dlx", "run"} & set(words[1:3]):
            for place in range(2, len(words)):
                self._suffix(words[place:], depth)
            self._of_strings(words, depth)
        if name in ("find", "fd", "fdfind"):
            for place, word in enumerate(words[:-1]):
                if word in ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"):
                    self._suffix(tuple(item for item in words[place + 1 :] if item not in (";", "+")), depth)
        if name in ("sed", "less", "more", "man"):
            for word in words[1:]:
                self._of_code(word, depth)
        if name in ("man", "rg", "sort", "curl", "svn", "hg"):
            self._of_code_options(words, depth)

    def _of_runner(self, name: str, words: tuple[str, ...], depth: int) -> None:
        """A wrapper, an interpreter, or an unknown program: each of its arguments can be a program."""
        for place in range(1, len(words)):
            self._suffix(words[place:], depth)
        self._of_strings(words, depth)
        if name in INTERPRETERS:
            for word in words[1:]:
                self._of_code(word, depth)

    def _suffix(self, words: tuple[str, ...], depth: int) -> None:
        first = words[0]
        if first.startswith("-") or ("=" in first and not first.startswith("=")):
            value = first.split("=", 1)[1] if "=" in first else ""
            if value and depth < DEPTH:
                self.found.setdefault((value, *words[1:]))
            return
        self.add(words, depth + 1) if program_of(first) in _LOOKED_INTO else self.found.setdefault(words)

    def _of_strings(self, words: tuple[str, ...], depth: int) -> None:
        for word in words[1:]:
            values = [word]
            while "=" in values[-1].split(" ")[0]:
                values.append(values[-1].split("=", 1)[1])
            for value in values:
                if any(char in value for char in " \t;\n$"):
                    self.of_text(value, depth + 1)

    def _of_code_options(self, words: tuple[str, ...], depth: int) -> None:
        for place, word in enumerate(words[1:], 1):
            if _CODE_OPTION.match(word) or _CODE_OPTION.match(words[place - 1]):
                self._of_code(word, depth)
                self.of_text(word.split("=", 1)[1] if "=" in word else word, depth + 1)

    def _of_code(self, code: str, depth: int) -> None:
        """The source code of a program: each of its strings can be a command, and so can all of them together."""
        strings = [next(filter(None, found), "") for found in _STRINGS.findall(code)]
        for text in strings[:40]:
            self.of_text(decode_ansi(text), depth + 1)
        if strings:
            self.add(tuple(strings[:60]), depth + 1)
            self.of_text("".join(strings), depth + 1)
            for place in range(1, min(len(strings), 12)):
                self._suffix(tuple(strings[place:]), depth)
        for mark in ("!", "exec=", "system(", "ProxyCommand=", "command=", "s//", "e "):
            if mark in code:
                self.of_text(code.split(mark, 1)[1], depth + 1)

    def _of_tokens(self, text: str, depth: int) -> None:
        """Handles text that our parser cannot read, but another shell can: each piece between separators is a
        command."""
        words: list[str] = []
        word = ""
        for token in [*_TOKENS.findall(text), ";"]:
            if token.isspace() or token in ";&|(){}`<>":
                if word:
                    words.append(word)
                    word = ""
                if not token.isspace() or "\n" in token:
                    self.add(tuple(words), depth + 1)
                    words = []
            else:
                word += _unquoted(token)


_GIT_SETTINGS = frozenset(
    {"core.pager", "core.editor", "core.sshCommand", "core.fsmonitor", "core.hooksPath", "diff.external"}
)
_LOOKED_INTO = (
    SHELLS
    | INTERPRETERS
    | {
        *("eval", "alias", "trap", "git", "find", "fd", "sudo", "env", "xargs", "exec", "command", "builtin", "nohup"),
        *("nice", "timeout", "docker", "podman", "kubectl", "npm", "sed", "ssh", "watch", "parallel", "doas", "su"),
        *("busybox", "time", "setsid", "awk"),
    }
)


def _unquoted(token: str) -> str:
    if token[:1] == "'":
        return token.strip("'")
    if token[:1] == '"':
        return token.strip('"').replace("\\", "")
    return token[1:] if token[:1] == "\\" else token.replace("$", "")


def _calls(statement: Node, names: Names) -> list[tuple[str, ...]]:
    """The simple commands that read the input of this statement."""
    command = statement.get("Cmd") or {}
    if command.get("Type") == "CallExpr":
        return expand_words(command.get("Args") or (), names)
    if command.get("Type") == "BinaryCmd":
        return _calls(command["X"], names)
    found: list[tuple[str, ...]] = []
    for inner in command.get("Stmts") or command.get("Do") or ():
        found += _calls(inner, names)
    return found


# what a word can become

READINGS = 24  # of one word or one command
_BRACE = lazy(r"\{([^{}]*(?:,|\.\.)[^{}]*)\}")
_SPLIT = "\x1f"  # separates words that an expansion can have produced


@frozen
class Names:
    """The variables that this line sets to plain text, each with all of its values."""

    values: dict[str, tuple[str, ...]]

    def of(self, name: str) -> tuple[str, ...]:
        return self.values.get(name, ())


def find_names(tree: object) -> Names:
    found: dict[str, list[str]] = {}
    for node in nodes(tree):
        name, value = node.get("Name"), node.get("Value")
        if isinstance(name, dict) and isinstance(value, dict) and "Parts" in value and not node.get("Naked"):
            found.setdefault(str(name.get("Value", "")), []).extend(expand(value, Names({}))[:4])
        if node.get("Type") == "WordIter" and isinstance(name, dict):
            for item in node.get("Items") or ():
                found.setdefault(str(name.get("Value", "")), []).extend(expand(item, Names({}))[:4])
    return Names({name: tuple(dict.fromkeys(values))[:6] for name, values in found.items()})


def expand_words(args: Iterable[Node], names: Names) -> list[tuple[str, ...]]:
    """The commands that these words can become."""
    each = [expand(word, names) for word in args]
    found = []
    for picked in islice(product(*each), READINGS):
        words = [piece for word in picked for piece in word.split(_SPLIT) if piece or _SPLIT not in word]
        if words:
            found.append(tuple(words))
    return list(dict.fromkeys(found))


def expand(word: Node, names: Names) -> list[str]:
    each = [_expand_part(part, names, quoted=False) for part in word.get("Parts") or ()]
    joined = ["".join(picked) for picked in islice(product(*each), READINGS)]
    return list(dict.fromkeys(piece for text in joined for piece in _braces(text)))[:READINGS]


def _braces(text: str) -> list[str]:
    """`{rm,-rf}` is two words; also returns them as one command."""
    found = _BRACE.search(text)
    if found is None or len(text) > 2000:
        return [text]
    pieces = found.group(1).split(",") if "," in found.group(1) else [found.group(1).split("..")[0]]
    whole = _SPLIT.join(text[: found.start()] + piece + text[found.end() :] for piece in pieces[:16])
    return _braces(whole) if whole.count("{") < text.count("{") else [whole]


def _expand_part(part: Node, names: Names, *, quoted: bool) -> list[str]:
    value = str(part.get("Value", ""))
    match part.get("Type"):
        case "Lit":
            return [unescape_double(value) if quoted else unescape_bare(value)]
        case "SglQuoted":
            return [decode_ansi(value) if part.get("Dollar") else value]
        case "DblQuoted":
            each = [_expand_part(inner, names, quoted=True) for inner in part.get("Parts") or ()]
            return ["".join(picked) for picked in islice(product(*each), READINGS)]
        case "ParamExp":
            return _expand_variable(part, names, quoted)
        case "CmdSubst":
            said = run_quietly(part.get("Stmts") or (), names)
            return [UNKNOWN] if said is None else [said.rstrip("\n") if quoted else _blanks(said.strip())]
        case _:
            return [UNKNOWN]


def _blanks(text: str) -> str:
    return _SPLIT.join(text.split())


def _expand_variable(part: Node, names: Names, quoted: bool) -> list[str]:
    name = str((part.get("Param") or {}).get("Value", ""))
    if name == "IFS":
        return [" " if quoted else _SPLIT]
    known = list(names.of(name))
    if part.get("Excl"):  # the variable that this one names
        known = [value for inner in known for value in names.of(inner)]
    if name in ("@", "*") or name.isdigit() or name in ("_", "-", "!", "?", "#", "$"):
        known = [*known, ""]
    exp = part.get("Exp") or {}
    if exp.get("Word"):
        known += expand(exp["Word"], names)
    if name in ("PATH", "HOME", "PWD", "SHELL") and part.get("Slice"):
        return ["/", UNKNOWN]
    known += ["", UNKNOWN] if not known else []
    if part.get("Slice") or part.get("Repl"):
        known = [*known, UNKNOWN]
    return [value if quoted else _blanks(value) if value.strip() else value for value in dict.fromkeys(known)]


# programs whose output is known without running anything


def run_quietly(statements: Sequence[Node], names: Names) -> str | None:
    """The output of these statements if they only print or decode plain text; None if it is unknown."""
    said = [_say(statement, names, None) for statement in statements]
    known = [text for text in said if text is not None]
    return "".join(known) if known and len(known) == len(said) else None


def say_pipeline(node: Node, names: Names) -> str | None:
    return _say(node, names, None)


def _say(statement: Node, names: Names, given: str | None) -> str | None:
    command = statement.get("Cmd") or {}
    for redirect in statement.get("Redirs") or ():
        text = _given_by(redirect, names)
        given = text if text is not None else given
    match command.get("Type"):
        case "BinaryCmd" if command.get("Op") in ("|", "|&"):
            first = _say(command["X"], names, given)
            return None if first is None else _say(command["Y"], names, first)
        case "Block" | "Subshell":
            inner = list(command.get("Stmts") or ())
            return _say(inner[0], names, given) if len(inner) == 1 else None
        case "CallExpr":
            commands = expand_words(command.get("Args") or (), names)
            return _output(commands[0], given) if commands else None
        case _:
            return None


def _given_by(redirect: Node, names: Names) -> str | None:
    if redirect.get("Op") == "<<<":
        return next(iter(expand(redirect.get("Word") or {}, names)), "")
    if redirect.get("Hdoc"):
        return document(redirect, names)
    return None


def document(redirect: Node, names: Names) -> str:
    parts = (redirect.get("Hdoc") or {}).get("Parts") or ()
    each = [_expand_part(part, names, quoted=True) for part in parts]
    return "".join(readings[0] if readings else "" for readings in each)


def _output(words: tuple[str, ...], given: str | None) -> str | None:
    name, rest = words[0].rsplit("/", 1)[-1], list(words[1:])
    options = "".join(word for word in rest if word.startswith("-"))
    match name:
        case "echo":
            while rest and rest[0].strip("-neE") == "" and rest[0].startswith("-"):
                rest.pop(0)
            return decode_ansi(" ".join(rest)) if "e" in options else " ".join(rest)
        case "printf" if rest:
            return _format(rest[0], rest[1:])
        case "which" | "type" if rest:
            return rest[-1]
        case "command" if "v" in options and rest:
            return rest[-1]
        case _ if given is None:
            return None
    return _filter(name, rest, options, given)


def _format(form: str, values: list[str]) -> str:
    form = decode_ansi(form)
    if "%" not in form:
        return form
    out = []
    for value in values or [""]:
        out.append(form.replace("%b", decode_ansi(value)).replace("%s", value).replace("%c", value[:1]))
    return "".join(out)


def _filter(name: str, rest: list[str], options: str, given: str) -> str | None:
    match name:
        case "cat" | "tee" | "sort" | "head" | "tail":
            return given
        case "rev":
            return "\n".join(line[::-1] for line in given.splitlines())
        case "base64" | "base32" | "openssl" | "gbase64" if "d" in options.lower() or "decode" in options:
            return _decoded(a2b_base64, given + "===")
        case "xxd" if "r" in options:
            return _decoded(unhexlify, "".join(given.split()))
        case "tr" if len(rest) >= 2 and rest[0] == "-d":
            return "".join(char for char in given if char not in rest[1])
        case "tr" if len(rest) >= 2:
            return given.translate(_table(rest[0], rest[1]))
        case _:
            return None


def _table(source: str, target: str) -> dict[int, str]:
    before, after = _range(source), _range(target)
    return {ord(char): after[min(place, len(after) - 1)] for place, char in enumerate(before) if after}


def _range(text: str) -> str:
    out, index = [], 0
    while index < len(text):
        if text[index + 1 : index + 2] == "-" and index + 2 < len(text):
            out += [chr(code) for code in range(ord(text[index]), ord(text[index + 2]) + 1)][:256]
            index += 3
        else:
            out.append(text[index])
            index += 1
    return "".join(out)


def _decoded(decode: Callable[[str], bytes], text: str) -> str | None:
    try:
        return decode(text).decode("utf-8", "replace")
    except (BadBase64, ValueError):
        return None
