"""Derives grants and rules from questions, with a description and tested examples.

A wildcard is offered only if `grammar` knows what it would match; everything else is offered exactly as it was asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from atlasbridge.core.policy.grammar import (
    DESTRUCTIVE,
    SHELLS,
    Grammar,
    Reading,
    WorkFolder,
    describe_grammar,
    find_grammar,
    program_of,
    read_words,
)
from atlasbridge.core.policy.judge import doubt_subject, judge
from atlasbridge.core.policy.pattern import REST, WILDCARD, Shape, has_wildcard, plain_host
from atlasbridge.core.policy.rule import Case, Grant, GrantShape, Policy, Say, Verdict
from atlasbridge.core.policy.shell import Parser, read_script
from atlasbridge.core.prompt.model import Subject, SubjectKind
from atlasbridge.core.values import frozen, replace

# shapes


def decide_shape(case: Case, parse: Parser) -> GrantShape | str:
    """What a grant from this question would allow, or why there can be none."""
    subject = case.subject
    if subject is None:
        return "it is not certain what the prompt is about"
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
    """A grant is evaluated like a rule, in which `*` matches anything, so it cannot contain a name with `*`."""
    target = case.subject.target if case.subject is not None and case.subject.kind is SubjectKind.EDIT else ""
    for what, name in (("the folder", case.where), ("the tool", case.tool), ("the file", target)):
        if WILDCARD in name:
            return f"{what} has a {WILDCARD} in its name, which a grant would match with any text"
    return ""


def _shape_of_command(case: Case, subject: Subject, parse: Parser) -> GrantShape | str:
    script = read_script(subject.text, parse)
    if script is None:
        return "it cannot be parsed as a command of a shell"
    if script.doubts:
        return f"it is not certain what would run: there is {script.doubts[0]}"
    if any(program_of(word) in SHELLS for item in script.commands for word in item.words):
        return "it starts another shell, and what that shell runs can change"
    shapes = tuple(dict.fromkeys(widest_shape(item.words, case.where) for item in script.commands))
    if any(has_wildcard(word) and word != REST for shape in shapes for word in shape.words):
        return f"one of its words contains {WILDCARD}, which a grant would match with any text"
    whole = GrantShape(shapes)
    verdict = _try(whole, case, parse)
    return whole if verdict.verdict is Say.ALLOW else verdict.reason


def widest_shape(words: Sequence[str], folder: str) -> Shape:
    """With `**` after the words that determine the action, if a grammar covers the rest; otherwise exactly these
    words."""
    reading = read_words(words, WorkFolder(folder))
    grammar = _covering(reading)
    if grammar is None or is_destructive(words) or not (grammar.options or grammar.words):
        return Shape(tuple(words))
    # the words after it are dropped, so none of them can be a literal `**`
    return Shape((*words[: reading.head], REST))


def _covering(reading: Reading) -> Grammar | None:
    """The grammar that covers every word of the command; None if there is none."""
    covered = all(not need.why or need.part or need.does for need in reading.needs)
    return find_grammar(reading.grammar) if reading.grammar and covered else None


def is_destructive(words: Sequence[str]) -> bool:
    """Whether it removes, overwrites, publishes, or runs as another user: then it is never offered automatically."""
    grammar = _covering(read_words(words, WorkFolder("/")))
    if grammar is not None:
        parts = grammar.name.split(" ")
        return not grammar.reads and not DESTRUCTIVE.isdisjoint({parts[0], " ".join(parts[:2])})
    program = program_of(words[0])
    return not DESTRUCTIVE.isdisjoint({program, f"{program} {(*words, '')[1]}"}) or (
        program in SHELLS and len(words) > 1
    )


def _about(case: Case, text: str) -> Case:
    assert case.subject is not None
    return replace(case, subject=replace(case.subject, text=text, shown=text))


def _try(shape: GrantShape, case: Case, parse: Parser) -> Verdict:
    return judge(Policy(Grant("0" * 8, shape, case.tool).rules()), case, parse)


# descriptions for a prompt


def describe(shape: GrantShape) -> str:
    """Describes exactly what it allows."""
    if shape.path:
        return f"changes of {shape.path}"
    if shape.host:
        return f"pages of {shape.host}"
    return "; ".join(describe_shape(item) for item in shape.commands)


def describe_shape(shape: Shape) -> str:
    if shape.words[-1] != REST:
        return f"exactly `{shape}`"
    base = shape.words[:-1]
    return f"`{' '.join(base)}` with {describe_grammar(read_words(base, WorkFolder('/')).grammar)}"


def say_wildcard(shape: Shape) -> str:
    """What its wildcard matches, if that is less than any words; otherwise ""."""
    place = next((place for place, word in enumerate(shape.words) if has_wildcard(word)), None)
    if place is None:
        return ""
    base = shape.words[:place]
    reading = read_words((*base, "x") if not read_words(base, WorkFolder("/")).grammar else base, WorkFolder("/"))
    nothing = next((need.why for need in reading.needs if need.why and not (need.part or need.does)), "")
    if nothing:
        return f"takes nothing, because {nothing}; write the words out"
    return f"takes only {describe_grammar(reading.grammar)}" if reading.grammar else ""


def examples(shape: GrantShape, case: Case, parse: Parser) -> tuple[list[str], list[tuple[str, str]]]:
    """Three examples that it would allow, and three that it would not, with the reason; each was tested."""
    would, would_not = _candidates(shape, case)
    tried = [(text, _try(shape, _example_case(case, text), parse)) for text in dict.fromkeys((*would, *would_not))]
    good = [text for text, verdict in tried if verdict.verdict is Say.ALLOW and text in would]
    bad = [
        (text, verdict.sentence) for text, verdict in tried if verdict.verdict is not Say.ALLOW and text in would_not
    ]
    return good[:3], bad[:3]


def _example_case(case: Case, text: str) -> Case:
    about = _about(case, text)
    assert about.subject is not None
    if about.subject.kind is SubjectKind.COMMAND:
        return about
    return replace(about, subject=replace(about.subject, target=text), real_target="")


_SAMPLES = {
    "path": ("src/a.txt", "/etc/passwd"),
    "revision": ("HEAD~1", "../x"),
    "test": ("tests/test_a.py", "/tmp/test_a.py"),
    "test_file": ("src/a.test.ts", "deploy"),
    "pattern": ("x", ""),
    "name": ("x", "--x=y"),
    "number": ("5", ""),
    "target": ("", "deploy"),
}


def _candidates(shape: GrantShape, case: Case) -> tuple[list[str], list[str]]:
    if shape.path:
        return [shape.path], [f"{shape.path}.bak", f"{shape.path}/../other", "/etc/passwd"]
    if shape.host:
        good = [f"https://{shape.host}/", f"https://{shape.host}/a", f"https://{shape.host}/a?b=c"]
        return good, ["https://example.net/", f"https://x.{shape.host}/", f"https://{shape.host}.example.net/"]
    asked = case.subject.text if case.subject else ""
    first = shape.commands[0]
    base = " ".join(word for word in first.words if word != REST)
    grammar = find_grammar(read_words(first.words, WorkFolder("/")).grammar) if first.words[-1] == REST else None
    good, bad = [asked, base], list[str]()
    if grammar is not None:
        kinds = [kind.rstrip("*") for kind in grammar.words]
        samples = [_SAMPLES[kind] for kind in kinds if kind in _SAMPLES]
        good += [f"{base} {right}" for right, _ in samples if right]
        good += [f"{base} {name}" for name, option in grammar.options.items() if not option.kind and name != "-NUMBER"]
        bad += [f"{base} {wrong}" for _, wrong in samples if wrong][-1:]
        bad += [text for text in grammar.no_match if text.startswith(f"{base} ")][:1]
    good += [str(item) for item in shape.commands if item.words[-1] != REST] + [f"{base} 2>&1", f"{base} && {base}"]
    bad += [f"{base} && rm -rf x", f"{base} x" if first.words[-1] != REST else f"{base} --unknown", f"{base} > file"]
    return list(dict.fromkeys(good)), list(dict.fromkeys(bad))


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


# suggests rules from past answers

LEAST = 2


@frozen
class PastQuestion:
    """A past question: `agreed` is None if nobody decided it."""

    case: Case
    agreed: bool | None


@frozen
class Suggestion:
    shape: Shape
    tool: str
    count: int
    examples: tuple[str, ...]

    def to_toml(self) -> str:
        name = "-".join(word for word in self.shape.words if word.replace("-", "").isalnum())[:40] or "rule"
        lines = [
            "[[rule]]",
            f"name = {quoted(name)}",
            'verdict = "allow"',
            f"command = [{', '.join(map(quoted, self.shape.words))}]",
            f"tool = {quoted(self.tool)}",
            f"match = [{', '.join(map(quoted, self.examples))}]",
        ]
        return "\n".join(lines) + "\n"


def suggest(answered: Iterable[PastQuestion], policy: Policy, parse: Parser, least: int = LEAST) -> list[Suggestion]:
    """Shapes that were approved and never denied, the most frequent first; without destructive ones and without those
    that rules already cover."""
    agreed: dict[tuple[str, Shape], list[str]] = {}
    refused: set[tuple[str, Shape]] = set()
    for item in answered:
        for shape in _single_shape(item.case, parse):
            key = (item.case.tool, shape)
            if item.agreed is False:
                refused.add(key)
            elif item.agreed and judge(policy, item.case, parse).rule == "":
                text = item.case.subject.text if item.case.subject else ""
                agreed.setdefault(key, []).append(text)
    found = [
        Suggestion(shape, tool, len(texts), tuple(dict.fromkeys(texts))[:3])
        for (tool, shape), texts in agreed.items()
        if len(texts) >= least
        and (tool, shape) not in refused
        and not is_destructive([word for word in shape.words if word != REST])
    ]
    return sorted(found, key=lambda item: (-item.count, str(item.shape)))


def _single_shape(case: Case, parse: Parser) -> tuple[Shape, ...]:
    shape = decide_shape(case, parse)
    return shape.commands if isinstance(shape, GrantShape) and len(shape.commands) == 1 else ()


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
