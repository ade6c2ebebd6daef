"""Commands of plain words need no parser: letters, digits, quotes without secrets, one blank between, joined by
`&&`, `||`, `|` and `;`.

Most commands are like that, and a verdict about them costs no process.  The tree is the very one that shfmt would give.
"""

from __future__ import annotations

from typing import Any

from atlasbridge.core.patterns import lazy

Node = dict[str, Any]

_LINE = lazy(
    r"(?:[A-Za-z0-9_./:@%+,=-]|'[ -&(-~]*'|\"[ !#%-\[\]-_a-~]*\")+;?"  # a word: bare, 'as it is' or "with no $ ` \"
    r"(?: (?:(?:[A-Za-z0-9_./:@%+,=-]|'[ -&(-~]*'|\"[ !#%-\[\]-_a-~]*\")+;?|&&|\|\|?|2>&1|2?>/dev/null))*"
)
_TOKEN = lazy(r"2>&1|2?>/dev/null|(?:[A-Za-z0-9_./:@%+,=-]|'[^']*'|\"[^\"]*\")+|;|&&|\|\|?")
_PART = lazy(r"'([^']*)'|\"([^\"]*)\"|([^'\"]+)")
_FIRST = lazy(r"[A-Za-z0-9_./:@%+,-]+")
_JOINS = ("&&", "||", "|", ";")
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


def plain_tree(text: str) -> Node | None:
    """The tree of a line of plain commands; None where only a parser can tell."""
    if not _LINE.fullmatch(text):
        return None
    statements: list[Node] = []
    lists: Node | None = None  # what `&&` and `||` have joined so far
    piped: Node | None = None  # what `|` has joined so far
    operator, words, redirects = ";", list[str](), list[Node]()
    for token in [*_TOKEN.findall(text), ";"]:
        if token in _REDIRECTS:
            redirects.append(_REDIRECTS[token])
        elif token not in _JOINS:
            if redirects:
                return None  # words after a redirection: rare
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


def _joined(operator: str, left: Node | None, right: Node) -> Node:
    return right if left is None else {"Cmd": {"Type": "BinaryCmd", "Op": operator, "X": left, "Y": right}}


def _call(words: list[str], redirects: list[Node]) -> Node:
    call = {"Cmd": {"Type": "CallExpr", "Args": [{"Parts": _parts(word)} for word in words]}}
    return {**call, "Redirs": list(redirects)} if redirects else call


def _parts(word: str) -> list[Node]:
    return [_part(found) for found in _PART.finditer(word)]


def _part(found: Any) -> Node:
    single, double, bare = found.groups()
    if bare is not None:
        return {"Type": "Lit", "Value": bare}
    if single is not None:
        return {"Type": "SglQuoted", "Value": single} if single else {"Type": "SglQuoted"}
    return {"Type": "DblQuoted", "Parts": [{"Type": "Lit", "Value": double}]} if double else {"Type": "DblQuoted"}
