"""One word of a shell command, read from shfmt's syntax tree: what it says, and whether it says that for certain.

A word is literal when every shell a tool may use (bash, sh, zsh) takes it as the same characters, whatever stands in
the environment or in the folder.  What it might become otherwise is the business of `expansion`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atlasbridge.core.patterns import lazy
from atlasbridge.core.values import frozen

Node = Mapping[str, Any]  # one node of the tree, as shfmt writes it

_ESCAPES = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ANSI = lazy(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|0?[0-7]{1,3}|c.|.)", 16)  # 16: DOTALL
_DOUBTFUL = {
    "*": "a file pattern",
    "?": "a file pattern",
    "[": "a file pattern",
    "{": "a brace",
    "}": "a brace",
    "!": "a history mark",
}
_OTHER_PARTS = {
    "ParamExp": "a variable",
    "CmdSubst": "a command substitution",
    "ArithmExp": "arithmetic",
    "ProcSubst": "a process substitution",
    "ExtGlob": "a file pattern",
}


@frozen
class Word:
    """`doubt` says why the text is not certain; "" when it is."""

    text: str
    doubt: str = ""


def read_word(node: Node) -> Word:
    parts = node.get("Parts") or ()
    texts, doubts = [], []
    for number, part in enumerate(parts):
        text, doubt = _read_part(part, first=number == 0)
        texts.append(text)
        doubts.append(doubt)
    return Word("".join(texts), next((doubt for doubt in doubts if doubt), ""))


def _read_part(part: Node, *, first: bool) -> tuple[str, str]:
    match part.get("Type"):
        case "Lit":
            return read_bare(str(part.get("Value", "")), first=first)
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
    for inner in part.get("Parts") or ():
        if inner.get("Type") == "Lit":
            texts.append(unescape_double(str(inner.get("Value", ""))))
        else:
            doubt = doubt or _OTHER_PARTS.get(str(inner.get("Type")), "something that is not a plain word")
    return "".join(texts), doubt


def read_bare(source: str, *, first: bool) -> tuple[str, str]:
    """Text outside quotes: backslashes go, and what a shell may expand is a doubt."""
    out, doubt, index = [], "", 0
    while index < len(source):
        char = source[index]
        if char == "\\":
            following = source[index + 1 : index + 2]
            doubt = doubt or ("" if following else "a backslash at the very end")  # bash keeps it
            out.append("" if following == "\n" else following or "\\")
            index += 2
            continue
        doubt = doubt or _DOUBTFUL.get(char, "") or _position_doubt(source, index, first)
        out.append(char)
        index += 1
    return "".join(out), doubt


def _position_doubt(source: str, index: int, first: bool) -> str:
    at_start = first and index == 0
    if source[index] == "~" and (at_start or source[index - 1 : index] in ("=", ":")):
        return "a home folder"
    if at_start and source[index] in "=%":
        return "a word that some shells expand"
    return ""


def unescape_double(source: str) -> str:
    """Inside double quotes a backslash counts before five characters only."""
    out, index = [], 0
    while index < len(source):
        following = source[index + 1 : index + 2]
        if source[index] == "\\" and following and following in '$`"\\\n':
            out.append("" if following == "\n" else following)
            index += 2
        else:
            out.append(source[index])
            index += 1
    return "".join(out)


def decode_ansi(source: str) -> str:
    """What $'…' and `printf` make of their escapes."""

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
