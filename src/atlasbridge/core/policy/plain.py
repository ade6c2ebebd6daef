"""Commands of plain words need no parser: letters, digits, marks that mean nothing to any shell, one blank between.

Most commands are like that, and a verdict about them costs no process.  The tree is the very one that shfmt would give.
"""

from __future__ import annotations

from typing import Any

from atlasbridge.core.patterns import lazy

_PLAIN = lazy(r"[A-Za-z0-9_./:@%+,-]+(?: [A-Za-z0-9_./:@%+,=-]+)*")
_RESERVED = frozenset(
    {
        *("if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "select", "in"),
        *("function", "time", "coproc", "let", "declare", "typeset", "export", "readonly", "local", "nameref"),
        *("foreach", "repeat", "end", "@test"),
    }
)


def plain_tree(text: str) -> dict[str, Any] | None:
    """The tree of a command of plain words; None where only a parser can tell."""
    if not _PLAIN.fullmatch(text):
        return None
    words = text.split(" ")
    if words[0] in _RESERVED:
        return None
    args = [{"Parts": [{"Type": "Lit", "Value": word}]} for word in words]
    return {"Type": "File", "Stmts": [{"Cmd": {"Type": "CallExpr", "Args": args}}]}
