"""Every command that a line may run, for `deny` and `ask`: raw, unwrapped, nested and decoded.

It reads generously: a form that would never run does no harm but a question or a refusal; one that is missed does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from atlasbridge.core.patterns import lazy
from atlasbridge.core.policy.expansion import (
    Names,
    document,
    expand,
    expand_words,
    find_names,
    has_comment,
    nodes,
    say_pipeline,
)
from atlasbridge.core.policy.pattern import UNKNOWN
from atlasbridge.core.policy.programs import INERT, INTERPRETERS, SHELLS, program_of
from atlasbridge.core.policy.word import Node, decode_ansi

Parser = Callable[[str], Node | None]  # shfmt's tree of a command; None where it cannot be parsed

DEPTH = 6
MOST = 600
PARSED = 48  # texts; more of them is an attack on the time of a verdict
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
        self.overflow = False  # there was more than could be looked at
        self.files: list[str] = []  # what is read or written beside the words

    def of_text(self, text: str, depth: int = 0) -> Forms:
        text = text.replace("\x00", "")
        if text in self._seen or not text.strip():
            return self
        if depth > DEPTH or len(self.found) > MOST or len(self._seen) >= PARSED:
            self.overflow = True
            return self
        self._seen.add(text)
        tree = self._parse(text)
        if tree is None:
            self._of_tokens(text, depth)
        else:
            self._of_tree(tree, text, depth)
        return self

    def _of_tree(self, tree: Node, text: str, depth: int) -> None:
        names = find_names(tree)
        if has_comment(tree):  # where it ends is not the same for every shell
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
        """A variable's value may be run later (`PAGER`, `GIT_SSH_COMMAND`, `PROMPT_COMMAND`, `$x`)."""
        if isinstance(assign.get("Value"), dict):
            for text in expand(assign["Value"], names)[:4]:
                text = text.replace("\x1f", " ")
                if " " in text:
                    self.of_text(text, depth + 1)

    def _of_pipe(self, node: Node, names: Names, depth: int) -> None:
        """What goes into a shell is a script, what goes into xargs are words."""
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
        """One command as it stands, and all that it may run in turn."""
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
        """Git runs what some of its options, settings and subcommands name; a message is only a message."""
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
        """`git -C x -c y=z push` is `git push`."""
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
        """A wrapper, an interpreter, or a program that nobody knows: each of its words may be a program."""
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
        """A program's text: each of its strings may be a command, and all of them together, too."""
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
        """No shell that we know could read it; another may: each piece between separators is a command."""
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
        *(
            "eval",
            "alias",
            "trap",
            "git",
            "find",
            "fd",
            "sudo",
            "env",
            "xargs",
            "exec",
            "command",
            "builtin",
            "nohup",
            "nice",
            "timeout",
        ),
        *(
            "docker",
            "podman",
            "kubectl",
            "npm",
            "sed",
            "ssh",
            "watch",
            "parallel",
            "doas",
            "su",
            "busybox",
            "time",
            "setsid",
            "awk",
        ),
    }
)


def _unquoted(token: str) -> str:
    if token[:1] == "'":
        return token.strip("'")
    if token[:1] == '"':
        return token.strip('"').replace("\\", "")
    return token[1:] if token[:1] == "\\" else token.replace("$", "")


def _calls(statement: Node, names: Names) -> list[tuple[str, ...]]:
    """The simple commands that read what this statement is given."""
    command = statement.get("Cmd") or {}
    if command.get("Type") == "CallExpr":
        return expand_words(command.get("Args") or (), names)
    if command.get("Type") == "BinaryCmd":
        return _calls(command["X"], names)
    found: list[tuple[str, ...]] = []
    for inner in command.get("Stmts") or command.get("Do") or ():
        found += _calls(inner, names)
    return found


def find_forms(text: str, parse: Parser) -> Sequence[tuple[str, ...]]:
    return list(Forms(parse).of_text(text).found)


__all__ = ["UNKNOWN", "Forms", "Parser", "find_forms"]
