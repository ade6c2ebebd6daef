"""What a word may become when a shell has expanded it: as many readings as are cheap to follow, for `deny`.

Variables that the same line sets to plain text, empty and positional ones, `$IFS`, defaults, braces, `echo` and
decoders in a substitution are followed; the rest stands in the word as `UNKNOWN`.
"""

from __future__ import annotations

from binascii import Error as BadBase64
from binascii import a2b_base64, unhexlify
from collections.abc import Iterable, Sequence
from itertools import islice, product

from atlasbridge.core.patterns import lazy
from atlasbridge.core.policy.pattern import UNKNOWN
from atlasbridge.core.policy.word import Node, decode_ansi, unescape_double
from atlasbridge.core.values import frozen

READINGS = 24  # of one word or one command
_BRACE = lazy(r"\{([^{}]*(?:,|\.\.)[^{}]*)\}")
_SPLIT = "\x1f"  # stands between words that an expansion may have made


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


def expand_words(args: Iterable[Node], names: Names) -> list[tuple[str, ...]]:
    """The commands that these words may make."""
    each = [expand(word, names) for word in args]
    found = []
    for picked in islice(product(*each), READINGS):
        words = [piece for word in picked for piece in _split(word)]
        if words:
            found.append(tuple(words))
    return list(dict.fromkeys(found))


def _split(word: str) -> list[str]:
    return [piece for piece in word.split(_SPLIT) if piece] if _SPLIT in word else [word]


def expand(word: Node, names: Names) -> list[str]:
    each = [_expand_part(part, names, quoted=False) for part in word.get("Parts") or ()]
    joined = ["".join(picked) for picked in islice(product(*each), READINGS)]
    return list(dict.fromkeys(piece for text in joined for piece in _braces(text)))[:READINGS]


def _braces(text: str) -> list[str]:
    """`{rm,-rf}` is two words; both also as one command."""
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
            return [unescape_double(value) if quoted else _bare(value)]
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


def _bare(source: str) -> str:
    out, index = [], 0
    while index < len(source):
        if source[index] == "\\":
            following = source[index + 1 : index + 2]
            out.append("" if following == "\n" else following)
            index += 2
        else:
            out.append(source[index])
            index += 1
    return "".join(out)


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


# programs whose output can be told without running anything


def run_quietly(statements: Sequence[Node], names: Names) -> str | None:
    """What these statements would print, where they only print or decode plain text; None where that is not known."""
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
            return _decode_base64(given)
        case "xxd" if "r" in options:
            return _decode_hex(given)
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


def _decode_base64(text: str) -> str | None:
    try:
        return a2b_base64(text + "===").decode("utf-8", "replace")
    except (BadBase64, ValueError):
        return None


def _decode_hex(text: str) -> str | None:
    try:
        return unhexlify("".join(text.split())).decode("utf-8", "replace")
    except (BadBase64, ValueError):
        return None
