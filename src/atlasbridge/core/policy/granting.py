"""From a question to a grant: what its shape would allow, in words and with examples that were tried.

What stands before the first option or file stays as it is; the rest may be other words, where that does not make the
program do something else.
"""

from __future__ import annotations

from atlasbridge.core.policy.grant import Grant, GrantShape
from atlasbridge.core.policy.judge import doubt_subject, judge
from atlasbridge.core.policy.pattern import REST, WILDCARD, Shape
from atlasbridge.core.policy.places import plain_host
from atlasbridge.core.policy.programs import SHELLS, program_of
from atlasbridge.core.policy.rule import Case, Policy, Say
from atlasbridge.core.policy.shell import Parser, read_script
from atlasbridge.core.prompt.model import Subject, SubjectKind
from atlasbridge.core.values import replace


def decide_shape(case: Case, parse: Parser) -> GrantShape | str:
    """What a grant from this question would allow, or why there can be none."""
    subject = case.subject
    if subject is None:
        return "what the answer is about could not be told for certain"
    doubt = doubt_subject(subject) or doubt_names(case)
    if doubt:
        return doubt
    match subject.kind:
        case SubjectKind.COMMAND:
            return _shape_of_command(case, subject, parse)
        case SubjectKind.EDIT if len(subject.targets) > 1:
            return "several files at once cannot be granted beforehand"
        case SubjectKind.EDIT if subject.target:
            return GrantShape(path=subject.target)
        case SubjectKind.FETCH if plain_host(subject.target or subject.text.strip()):
            return GrantShape(host=plain_host(subject.target or subject.text.strip()))
        case kind:
            return f"a {kind.value} cannot be granted beforehand"


def doubt_names(case: Case) -> str:
    """A grant is judged as a rule, in which `*` stands for anything: what is called so cannot be named by one."""
    for what, name in (("the folder", case.where), ("the tool", case.tool), ("the file", _target(case))):
        if WILDCARD in name:
            return f"{what} has a {WILDCARD} in its name, which a grant would take for any text"
    return ""


def _target(case: Case) -> str:
    return case.subject.target if case.subject is not None and case.subject.kind is SubjectKind.EDIT else ""


def _shape_of_command(case: Case, subject: Subject, parse: Parser) -> GrantShape | str:
    script = read_script(subject.text, parse)
    if script is None:
        return "it cannot be parsed as a command of a shell"
    if script.doubts:
        return f"it is not certain what would run: {script.doubts[0]}"
    if any(WILDCARD in word for item in script.commands for word in item.words):
        return f"a word of it holds a {WILDCARD}, which a grant would take for any text"
    if any(program_of(word) in SHELLS for item in script.commands for word in item.words):
        return "a shell within it runs what its own words say, and they may come to mean something else"
    shapes = tuple(dict.fromkeys(_widest(case, words, parse) for words in (item.words for item in script.commands)))
    whole = GrantShape(shapes)
    if not _allows(whole, case, parse):
        return "it runs other programs in a way that a grant cannot hold"
    return whole


def _widest(case: Case, words: tuple[str, ...], parse: Parser) -> Shape:
    """With any further words after the program and its subcommands; exactly these words where that were too much."""
    fixed = 1
    while fixed < len(words) and _is_name(words[fixed]):
        fixed += 1
    if fixed > 1 or len(words) == 1:
        wide = Shape((*words[:fixed], REST))
        quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
        if _allows(GrantShape((wide,)), _about(case, quoted), parse):
            return wide
    return Shape(tuple(word for word in words))


def _is_name(word: str) -> bool:
    """A subcommand, by its looks: no option, no path, no file."""
    return word.replace("-", "").replace(":", "").replace("_", "").isalnum() and not word.startswith("-")


def _about(case: Case, text: str) -> Case:
    assert case.subject is not None
    return replace(case, subject=replace(case.subject, text=text, shown=text))


def _allows(shape: GrantShape, case: Case, parse: Parser) -> bool:
    grant = Grant("0" * 8, shape, case.tool)
    return judge(Policy(grant.rules()), case, parse).verdict is Say.ALLOW


# in words, for a card


def describe(shape: GrantShape) -> str:
    if shape.path:
        return f"changes of {shape.path}"
    if shape.host:
        return f"pages of {shape.host}"
    parts = []
    for item in shape.commands:
        open_end = item.words[-1] == REST
        parts.append(f"{' '.join(item.words[:-1])} with any further words" if open_end else f"exactly {item}")
    return "; ".join(parts)


def examples(shape: GrantShape, case: Case, parse: Parser) -> tuple[list[str], list[str]]:
    """Three that it would allow and three that it would not, each tried."""
    would, would_not = _candidates(shape, case)
    good = [text for text in would if _allows(shape, _example_case(case, text), parse)]
    bad = [text for text in would_not if not _allows(shape, _example_case(case, text), parse)]
    return good[:3], bad[:3]


def _example_case(case: Case, text: str) -> Case:
    about = _about(case, text)
    assert about.subject is not None
    if about.subject.kind is SubjectKind.COMMAND:
        return about
    return replace(about, subject=replace(about.subject, target=text), real_target="")


def _candidates(shape: GrantShape, case: Case) -> tuple[list[str], list[str]]:
    if shape.path:
        return [shape.path], [f"{shape.path}.bak", f"{shape.path}/../other", "/etc/passwd"]
    if shape.host:
        good = [f"https://{shape.host}/", f"https://{shape.host}/a", f"https://{shape.host}/a?b=c"]
        return good, ["https://example.net/", f"https://x.{shape.host}/", f"https://{shape.host}.example.net/"]
    asked = case.subject.text if case.subject else ""
    first = shape.commands[0]
    base = " ".join(word for word in first.words if word != REST)
    good = [asked, *(str(item) for item in shape.commands if item.words[-1] != REST)]
    good += [base, f"{base} --help", f"{base} x", f"{base} 2>&1", f"{base} && {base}"]
    return list(dict.fromkeys(good)), [*_neighbours(first), f"{base} && rm -rf x", f"sudo {base}", f"{base} > file"]


def _neighbours(shape: Shape) -> list[str]:
    """What looks like it and is not: another subcommand, another last word, another program."""
    fixed = [word for word in shape.words if word != REST]
    return [" ".join([*fixed[:-1], "other"])] if len(fixed) > 1 else [f"{fixed[0]}x"]


def in_words(seconds: float | None, uses: int | None, session: bool) -> str:
    bounds = []
    if uses is not None:
        bounds.append("once" if uses == 1 else f"{uses} times")
    if seconds is not None:
        minutes = round(seconds / 60)
        length = f"{minutes} minutes" if minutes < 120 else f"{minutes // 60} hours"
        bounds.append(f"{'for' if uses is None else 'within'} {length}")
    where = "in this session" if session else "in this folder"
    return " ".join([*bounds, where])
