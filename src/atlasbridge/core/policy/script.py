"""A command line as `allow` must see it: every simple command with its literal words, and every doubt about the rest.

Only what is listed here is understood; each other construct of the shell is a doubt, and a doubt means that a person is
asked.  `deny` reads the same tree more generously, in `forms`.
"""

from __future__ import annotations

from collections.abc import Iterable

from atlasbridge.core.policy.expansion import has_comment
from atlasbridge.core.policy.word import Node, Word, read_word
from atlasbridge.core.values import frozen

_JOINS = frozenset({"&&", "||", "|"})
_STATEMENT_KEYS = frozenset({"Pos", "End", "Cmd", "Negated", "Redirs", "Position", "Semicolon"})
_UNDERSTOOD = {
    "FuncDecl": "a function is defined",
    "ForClause": "a loop sets a variable",
    "WhileClause": "a loop",
    "CaseClause": "a case",
    "DeclClause": "a variable is declared",
    "LetClause": "arithmetic",
    "ArithmCmd": "arithmetic",
    "TestClause": "an extended test",
    "CoprocClause": "a coprocess",
    "TimeClause": "time, which behind a pipe is another program",
}


@frozen
class SimpleCommand:
    words: tuple[str, ...]
    moved: bool = False  # a `cd` may have come before it: its folder is not known


@frozen
class Script:
    commands: tuple[SimpleCommand, ...]
    doubts: tuple[str, ...] = ()


_MOVERS = frozenset({"cd", "pushd", "popd", "chdir"})


class _Reader:
    def __init__(self) -> None:
        self.commands: list[SimpleCommand] = []
        self.doubts: list[str] = []
        self.moved = False

    def statements(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self.statement(node)

    def statement(self, node: Node) -> None:
        if node.get("Background") or node.get("Disown"):
            self.doubts.append("something runs in the background")
        strange = sorted(set(node) - _STATEMENT_KEYS - {"Background", "Disown", "Comments"})
        if strange:
            self.doubts.append(f"a statement of an unknown kind ({', '.join(strange)})")
        for redirect in node.get("Redirs") or ():
            self.redirect(redirect)
        command = node.get("Cmd")
        if command is None:
            self.doubts.append("a statement without a command")
        else:
            self.command(command)

    def command(self, node: Node) -> None:
        match node.get("Type"):
            case "CallExpr":
                self.call(node)
            case "BinaryCmd":
                if node.get("Op") not in _JOINS:
                    self.doubts.append(f"commands joined with {node.get('Op')}")
                self.statement(node["X"])
                self.statement(node["Y"])
            case "Block" | "Subshell":
                self.statements(node.get("Stmts") or ())
            case "IfClause":
                self.condition(node)
            case other:
                self.doubts.append(_UNDERSTOOD.get(str(other), f"a construct of the shell ({other})"))

    def condition(self, node: Node) -> None:
        for name in ("Cond", "Then"):
            self.statements(node.get(name) or ())
        if node.get("Else"):
            self.condition(node["Else"])

    def call(self, node: Node) -> None:
        if node.get("Assigns"):
            self.doubts.append("a variable is set before the command")
        words = [read_word(word) for word in node.get("Args") or ()]
        self.doubts += [describe_doubt(word) for word in words if word.doubt]
        if not words:
            self.doubts.append("no command")
            return
        self.commands.append(SimpleCommand(tuple(word.text for word in words), self.moved))
        self.moved = self.moved or any(word.text.rsplit("/")[-1] in _MOVERS for word in words)

    def redirect(self, node: Node) -> None:
        """Only what can neither write nor read a file: another number, or the device that keeps nothing."""
        word = read_word(node.get("Word") or {})
        operator = str(node.get("Op", ""))
        harmless = operator in (">&", "<&") and word.text in ("0", "1", "2")
        empty = operator in (">", ">>", "<", "&>", "&>>", ">|") and word.text == "/dev/null"
        if word.doubt or node.get("Hdoc") or not (harmless or (empty and operator != "&>" and operator != "&>>")):
            self.doubts.append(f"a redirection ({operator} {word.text or '…'})")


def describe_doubt(word: Word) -> str:
    return f"{word.doubt} in {word.text!r}" if word.text else word.doubt


def read_script(tree: Node) -> Script:
    reader = _Reader()
    if has_comment(tree):
        reader.doubts.append("a comment, which not every shell ends where another does")
    reader.statements(tree.get("Stmts") or ())
    if not reader.commands and not reader.doubts:
        reader.doubts.append("no command")
    return Script(tuple(reader.commands), tuple(dict.fromkeys(reader.doubts)))
