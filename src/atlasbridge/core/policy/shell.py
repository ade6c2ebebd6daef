"""Reads a command line as a shell does, for `allow`: simple commands with literal words, and every doubt about the
rest.

The tree comes from shfmt, and shfmt is not the shell that will run the command: whatever bash, dash, zsh and busybox
could read differently is a doubt, and with a doubt a person is asked. `forms` reads the same tree more generously for
`deny`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from atlasbridge.core.patterns import lazy
from atlasbridge.core.values import frozen

Node = Mapping[str, Any]  # one node of shfmt's tree
Parser = Callable[[str], Node | None]  # returns shfmt's tree of a command; None if it cannot be parsed

_ESCAPES = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ANSI = lazy(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|0?[0-7]{1,3}|c.|.)", 16)  # 16: DOTALL
_DOUBTFUL = {**dict.fromkeys("*?[", "a file pattern"), **dict.fromkeys("{}", "a brace"), "!": "a history mark"}
_AFTER_DOLLAR = ("", " ", "\t", "|", ")")  # zsh expands `$=x`, `$+x`, `$^x` and `$~x`; every shell `$(`, `${` and `$'`
_SPECIAL = lazy(r"""\\([$`"\\\n])""")
_ESCAPED = lazy(r"\\(.?)", 16)
_CONTINUED = lazy(r"\\\n")
# A continuation that all shells read alike is between two words: a space before it, a word or an operator after it.
_BETWEEN_WORDS = lazy(r"(?<!\\)[ \t]\\\n[ \t]*[^\s#\\]")
_OTHER_PARTS = {
    "ParamExp": "a variable",
    "CmdSubst": "a command substitution",
    "ArithmExp": "arithmetic",
    "ProcSubst": "a process substitution",
    "ExtGlob": "a file pattern",
}


@frozen
class Word:
    """A word is literal if every shell that a tool can use reads it as the same characters, whatever the environment or
    the folder contains. `doubt` says why the text is uncertain, "" if it is not; `source` is the original text."""

    text: str
    doubt: str = ""
    source: str = ""


def read_word(node: Node) -> Word:
    parts = node.get("Parts") or ()
    pieces = [_read_part(part) for part in parts]
    doubt = next((doubt for _, doubt in pieces if doubt), "") or _dollar_doubt(parts)
    return Word("".join(text for text, _ in pieces), doubt, "".join(map(_source, parts)) if doubt else "")


def _read_part(part: Node) -> tuple[str, str]:
    match part.get("Type"):
        case "Lit":
            return read_bare(str(part.get("Value", "")))
        case "SglQuoted" if not part.get("Dollar"):
            return str(part.get("Value", "")), ""
        case "SglQuoted":
            return decode_ansi(str(part.get("Value", ""))), "an escaped string"
        case "DblQuoted":
            return _read_double(part)
        case other:
            return "", _OTHER_PARTS.get(str(other), "something that is not a plain word")


def _read_double(part: Node) -> tuple[str, str]:
    texts, doubt = [], "a translated string" if part.get("Dollar") else ""
    inside = part.get("Parts") or ()
    for inner in inside:
        if inner.get("Type") == "Lit":
            texts.append(unescape_double(str(inner.get("Value", ""))))
        else:
            doubt = doubt or _OTHER_PARTS.get(str(inner.get("Type")), "something that is not a plain word")
    return "".join(texts), doubt or _dollar_doubt(inside)


def _dollar_doubt(parts: Sequence[Node]) -> str:
    """shfmt returns a dollar that starts nothing as a separate literal; a shell can still expand it."""
    for number, part in enumerate(parts):
        value = str(part.get("Value", "")) if part.get("Type") == "Lit" else ""
        if value.replace("\\\\", "").replace("\\$", "").count("$") == 0:
            continue
        following = parts[number + 1] if number + 1 < len(parts) else None
        after = str(following.get("Value", "")) if following is not None and following.get("Type") == "Lit" else ""
        alone = value == "$" and (following is None or after[:1] in _AFTER_DOLLAR[1:])
        if not alone:
            return "a dollar that some shells expand"
    return ""


def _source(part: Node) -> str:
    """The approximate original text, for a sentence about the doubt."""
    value = str(part.get("Value", ""))
    match part.get("Type"):
        case "Lit":
            return value
        case "SglQuoted":
            return f"{'$' if part.get('Dollar') else ''}'{value}'"
        case "DblQuoted":
            return f'"{"".join(map(_source, part.get("Parts") or ()))}"'
        case "ParamExp":
            name = str((part.get("Param") or {}).get("Value", ""))
            return f"${name}" if part.get("Short") else f"${{{name}}}"
        case "CmdSubst":
            return "$(…)"
        case "ArithmExp":
            return "$((…))"
        case "ProcSubst":
            return "<(…)"
        case _:
            return "…"


def read_bare(source: str) -> tuple[str, str]:
    """Text outside quotes: removes backslashes; anything that a shell could expand is a doubt."""
    out, doubt, index = [], "", 0
    while index < len(source):
        char = source[index]
        if char == "\\":
            following = source[index + 1 : index + 2]
            doubt = doubt or ("" if following else "a backslash at the very end")  # bash keeps it
            out.append("" if following == "\n" else following or "\\")
            index += 2
            continue
        doubt = doubt or _DOUBTFUL.get(char, "") or _position_doubt(source, index)
        out.append(char)
        index += 1
    return "".join(out), doubt


def _position_doubt(source: str, index: int) -> str:
    """At the start of an unquoted part: zsh expands there even after an empty pair of quotes."""
    if source[index] == "~" and source[index - 1 : index] in ("", "=", ":"):
        return "a home folder"
    if index == 0 and source[0] in "=%":
        return "a word that some shells expand"
    return ""


def unescape_double(source: str) -> str:
    """Inside double quotes, a backslash is special before five characters only."""
    return _SPECIAL.sub(_unescaped, source)


def unescape_bare(source: str) -> str:
    """Outside quotes, a backslash is special before every character."""
    return _ESCAPED.sub(_unescaped, source)


def _unescaped(found: Any) -> str:
    return "" if found[1] == "\n" else str(found[1])


def decode_ansi(source: str) -> str:
    """Decodes the escapes of $'…' and `printf`."""

    def one(found: Any) -> str:
        code = str(found.group(1))
        if code[0] in "xuU" and len(code) > 1:
            number = int(code[1:], 16)
            return chr(number) if number < 0x110000 else ""
        if code[0] in "01234567":
            return chr(int(code, 8) & 0xFF)
        if code[0] == "c" and len(code) > 1:
            return chr(ord(code[1]) & 0x1F)
        return _ESCAPES.get(code, code)

    return _ANSI.sub(one, source)


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
class ShellDoubt:
    """Why a command is uncertain, as a part of a sentence, and the word in question; "" if there is no single one."""

    why: str
    word: str = ""

    def __str__(self) -> str:
        return f"{self.why} (`{self.word}`)" if self.word and self.word not in self.why else self.why


@frozen
class SimpleCommand:
    words: tuple[str, ...]
    went: tuple[str, ...] = ()  # where an earlier `cd` could have led; "" if that is unknown


@frozen
class Script:
    commands: tuple[SimpleCommand, ...]
    doubts: tuple[ShellDoubt, ...] = ()


_MOVERS = frozenset({"cd", "pushd", "popd", "chdir"})


class _Reader:
    def __init__(self) -> None:
        self.commands: list[SimpleCommand] = []
        self.doubts: list[ShellDoubt] = []
        self.went: tuple[str, ...] = ()

    def doubt(self, why: str, word: str = "") -> None:
        self.doubts.append(ShellDoubt(why, word))

    def statements(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self.statement(node)

    def statement(self, node: Node) -> None:
        if node.get("Background") or node.get("Disown"):
            self.doubt("something runs in the background")
        strange = sorted(set(node) - _STATEMENT_KEYS - {"Background", "Disown", "Comments"})
        if strange:
            self.doubt(f"a statement of an unknown kind ({', '.join(strange)})")
        for redirect in node.get("Redirs") or ():
            self.redirect(redirect)
        command = node.get("Cmd")
        if command is None:
            self.doubt("a statement without a command")
        else:
            self.command(command)

    def command(self, node: Node) -> None:
        match node.get("Type"):
            case "CallExpr":
                self.call(node)
            case "BinaryCmd":
                if node.get("Op") not in _JOINS:
                    self.doubt(f"commands joined with {node.get('Op')}")
                self.statement(node["X"])
                self.statement(node["Y"])
            case "Block" | "Subshell":
                self.statements(node.get("Stmts") or ())
            case "IfClause":
                self.condition(node)
            case other:
                self.doubt(_UNDERSTOOD.get(str(other), f"a construct of the shell ({other})"))

    def condition(self, node: Node) -> None:
        for name in ("Cond", "Then"):
            self.statements(node.get(name) or ())
        if node.get("Else"):
            self.condition(node["Else"])

    def call(self, node: Node) -> None:
        if node.get("Assigns"):
            self.doubt("a variable is set before the command")
        words = [read_word(word) for word in node.get("Args") or ()]
        self.doubts += [ShellDoubt(word.doubt, word.source) for word in words if word.doubt]
        if not words:
            self.doubt("no command")
            return
        texts = tuple(word.text for word in words)
        self.commands.append(SimpleCommand(texts, self.went))
        if any(text.rsplit("/")[-1] in _MOVERS for text in texts):
            self.went += (texts[1] if texts[0] == "cd" and len(texts) == 2 else "",)

    def redirect(self, node: Node) -> None:
        """Allows only redirections that neither write nor read a file: to another descriptor, or to /dev/null."""
        word = read_word(node.get("Word") or {})
        operator = str(node.get("Op", ""))
        number = str((node.get("N") or {}).get("Value", ""))
        if number not in ("", "0", "1", "2"):  # `{fd}>` and `10>` are words for some shells
            self.doubt(f"a redirection of {number}")
        harmless = operator in (">&", "<&") and word.text in ("0", "1", "2")
        empty = operator in (">", ">>", "<", "&>", "&>>", ">|") and word.text == "/dev/null"
        if word.doubt or node.get("Hdoc") or not (harmless or (empty and operator != "&>" and operator != "&>>")):
            self.doubt(f"a redirection ({operator} {word.text or '…'})")


def read_script(text: str, parse: Parser) -> Script | None:
    """Returns None if it cannot be parsed."""
    tree = parse(text)
    if tree is None:
        return None
    reader = _Reader()
    if has_comment(tree):
        reader.doubt("a comment, which not every shell ends where another does")
    if len(_CONTINUED.findall(text)) != len(_BETWEEN_WORDS.findall(text)):
        reader.doubt("a line that is continued within a word")
    reader.statements(tree.get("Stmts") or ())
    if not reader.commands and not reader.doubts:
        reader.doubt("no command")
    return Script(tuple(reader.commands), tuple(dict.fromkeys(reader.doubts)))


def nodes(tree: object) -> Iterable[Node]:
    """Every node of a tree, in reading order."""
    stack = [tree]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            yield item
            stack.extend(reversed(list(item.values())))
        elif isinstance(item, list):
            stack.extend(reversed(item))


def has_comment(tree: object) -> bool:
    return any(name == "Comments" or name.endswith("Last") for node in nodes(tree) for name in node)


# Commands of plain words need no parser: letters, digits, quotes without special characters, single spaces, joined by
# `&&`, `||`, `|` and `;`. Most commands are like that, and their verdict needs no process. The tree is identical to
# shfmt's.

_Tree = dict[str, Any]

_LINE = lazy(
    # a word: bare, in single quotes, or in double quotes without $ ` \"
    r"(?:[A-Za-z0-9_./:@%+,=-]|'[ -&(-~]*'|\"[ !#%-\[\]-_a-~]*\")+;?"
    r"(?: (?:(?:[A-Za-z0-9_./:@%+,=-]|'[ -&(-~]*'|\"[ !#%-\[\]-_a-~]*\")+;?|&&|\|\|?|2>&1|2?>/dev/null))*"
)
_TOKEN = lazy(r"2>&1|2?>/dev/null|(?:[A-Za-z0-9_./:@%+,=-]|'[^']*'|\"[^\"]*\")+|;|&&|\|\|?")
_PART = lazy(r"'([^']*)'|\"([^\"]*)\"|([^'\"]+)")
_FIRST = lazy(r"[A-Za-z0-9_./:@%+,-]+")
_ENDS = ("&&", "||", "|", ";")
_REDIRECTS = {
    "2>&1": {"Op": ">&", "N": {"Value": "2"}, "Word": {"Parts": [{"Type": "Lit", "Value": "1"}]}},
    ">/dev/null": {"Op": ">", "Word": {"Parts": [{"Type": "Lit", "Value": "/dev/null"}]}},
    "2>/dev/null": {"Op": ">", "N": {"Value": "2"}, "Word": {"Parts": [{"Type": "Lit", "Value": "/dev/null"}]}},
}
_RESERVED = frozenset(
    {
        *("if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "select", "in"),
        *("function", "time", "coproc", "let", "declare", "typeset", "export", "readonly", "local", "nameref"),
        *("foreach", "repeat", "end", "@test"),
    }
)


def plain_tree(text: str) -> _Tree | None:
    """The tree of a line of plain commands; None if a parser is needed."""
    if not _LINE.fullmatch(text):
        return None
    statements: list[_Tree] = []
    lists: _Tree | None = None  # what `&&` and `||` have joined so far
    piped: _Tree | None = None  # what `|` has joined so far
    operator, words, redirects = ";", list[str](), list[_Tree]()
    for token in [*_TOKEN.findall(text), ";"]:
        if token in _REDIRECTS:
            redirects.append(_REDIRECTS[token])
        elif token not in _ENDS:
            if redirects:
                return None  # words after a redirection are rare
            words.append(token)
        else:
            if not words or not _FIRST.fullmatch(words[0]) or words[0] in _RESERVED:
                return None
            piped = _joined("|", piped, _call(words, redirects))
            words, redirects = [], []
            if token == "|":
                continue
            lists, piped, operator = _joined(operator, lists, piped), None, token
            if token == ";":
                statements.append(lists)
                lists = None
    return {"Type": "File", "Stmts": statements}


def _joined(operator: str, left: _Tree | None, right: _Tree) -> _Tree:
    return right if left is None else {"Cmd": {"Type": "BinaryCmd", "Op": operator, "X": left, "Y": right}}


def _call(words: list[str], redirects: list[_Tree]) -> _Tree:
    call = {"Cmd": {"Type": "CallExpr", "Args": [{"Parts": [*map(_part, _PART.finditer(word))]} for word in words]}}
    return {**call, "Redirs": list(redirects)} if redirects else call


def _part(found: Any) -> _Tree:
    single, double, bare = found.groups()
    if bare is not None:
        return {"Type": "Lit", "Value": bare}
    if single is not None:
        return {"Type": "SglQuoted", "Value": single} if single else {"Type": "SglQuoted"}
    return {"Type": "DblQuoted", "Parts": [{"Type": "Lit", "Value": double}]} if double else {"Type": "DblQuoted"}
