"""The table of programs: its own examples, what people tried to get past it, and that rules stay useful."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from atlasbridge.core.daemon.rules import resolve_path
from atlasbridge.core.policy import grammar
from atlasbridge.core.policy.grammar import (
    PROGRAMS,
    WorkFolder,
    contradictions,
    find_grammar,
    read_words,
)
from atlasbridge.core.policy.judge import judge
from atlasbridge.core.policy.offer import PastQuestion, decide_shape, describe, examples, say_wildcard, suggest
from atlasbridge.core.policy.pattern import REST, Shape
from atlasbridge.core.policy.reader import read_policy
from atlasbridge.core.policy.rule import Case, Grant, GrantShape, Policy, PolicyRule, Say, Verdict
from atlasbridge.core.prompt.model import Subject, SubjectKind, SubjectSource
from atlasbridge.core.routing.shell_parser import ShellParser
from atlasbridge.core.values import replace

HERE = "/home/me/src"
EVERYDAY = tomllib.loads((Path(__file__).parent / "everyday.toml").read_text(encoding="utf-8"))

# The words of a rule, and commands that its `**` must not take.
PAST_IT = {
    "npm run test": [
        "npm run test '---node-options=--import=data:text/javascript,x'",
        "npm run test -- --globalSetup ./e.js",
        "npm run test -- src/a.test.ts",
        "npm run test deploy",
        "npm run test -node-options=x",
    ],
    "make test": ["make test deploy", "make test V=1", "make test -f x"],
    "rake spec": ["rake spec db:drop"],
    "gradle test": ["gradle test publish"],
    "mvn test": ["mvn test deploy"],
    "just test": ["just test deploy"],
    "ant test": ["ant test deploy"],
    "invoke test": ["invoke test deploy"],
    "tox": ["tox -e publish", "tox -epublish", "tox run -e publish"],
    "nox": ["nox -s release", "nox -srelease", "nox --session=release"],
    "git": [
        "git format-patch --output-directory=x HEAD",
        "git fetch -f origin x:main",
        "git interpret-trailers --in-place x",
        "git my-plugin",
        "git push",
    ],
    "git format-patch": ["git format-patch --output-directory x HEAD", "git format-patch -o x HEAD"],
    "git fetch": ["git fetch -f origin x:main", "git fetch origin x:main", "git fetch origin +main"],
    "terraform plan": ["terraform plan -out x", "terraform plan -out=x", "terraform plan --out=x"],
    "bazel test": ["bazel test --run_under=evil //x", "bazel test --workspace_status_command=evil //x"],
    "curl": [
        "curl FILE:///etc/passwd",
        "curl --variable x@f --expand-url https://a/",
        "curl https://a.example/x",
        "curl file:///etc/passwd",
    ],
    "apt": ["apt -o DPkg::Pre-Invoke::=evil list"],
    "mypy": ["mypy @file", "mypy /etc"],
    "tsc": ["tsc @file"],
    "tree": ["tree --output=x", "tree -o x"],
    "kubectl": ["kubectl evil-plugin", "kubectl get secrets", "kubectl get pods --kubeconfig x"],
    "cargo": ["cargo evil", "cargo test -- --x"],
    "gh": ["gh evil-extension", "gh api x", "gh pr merge 1"],
    "systemctl": ["systemctl poweroff", "systemctl restart x"],
    "cat": [
        "cat //proc/self/environ",
        "cat /proc/self/environ",
        "cat ../../.ssh/id",
        "cat /home/me/.netrc",
        "cat /home/me/srcx/a",
    ],
    "docker": ["docker run x", "docker compose up", "docker exec a b"],
    "npx": ["npx evil", "npx -y tsc", "npx tsc --noEmit @file"],
    "python -m": ["python -m pytest -p evil", "python -m http.server"],
    "cd src && cat": ["cd / && cat etc/passwd"],
}


@pytest.fixture(scope="module")
def parser() -> Iterator[ShellParser]:
    made = ShellParser()
    yield made
    made.close()


def case(text: str, folder: str = HERE) -> Case:
    subject = Subject(SubjectKind.COMMAND, text, folder, SubjectSource.HOOK, True, text)
    return Case(subject, "claude", "", folder, "/home/me")


def rule(words: str, *more: str) -> Policy:
    return Policy((PolicyRule("r", Say.ALLOW, Shape((*words.split(), *more))),))


def granted(asked: str, text: str, parser: ShellParser) -> bool:
    """Whether a grant that was given for one command allows another."""
    shape = decide_shape(case(asked), parser)
    assert isinstance(shape, GrantShape), shape
    return judge(Policy(Grant("0" * 8, shape, "claude").rules()), case(text), parser).verdict is Say.ALLOW


def test_every_grammar_holds_to_its_own_examples() -> None:
    found = [find_grammar(name) for name in PROGRAMS]
    assert [wrong for name in PROGRAMS if " " not in name for wrong in contradictions(name)] == []
    assert sum(len(one.match) + len(one.no_match) for one in found if one is not None) > 900


def test_a_program_whose_examples_do_not_hold_gets_no_wildcard(
    parser: ShellParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert judge(rule("wc", REST), case("wc -l a"), parser).verdict is Say.ALLOW
    monkeypatch.setitem(grammar.PROGRAMS["wc"], "no_match", ["wc -l a"])
    for cached in (grammar.find_grammar, grammar.contradictions):
        monkeypatch.setattr(grammar, cached.__name__, lru_cache(cached.__wrapped__))
    verdict = judge(rule("wc", REST), case("wc -l a"), parser)
    assert verdict.verdict is Say.ASK and "contradicts itself: wc -l a" in verdict.sentence
    assert judge(rule("head", REST), case("head -3 a"), parser).verdict is Say.ALLOW


def test_every_kind_of_the_table_is_known() -> None:
    known = grammar.KINDS.keys() | grammar.PATTERNS.keys()
    for name in PROGRAMS:
        found = find_grammar(name)
        assert found is not None
        options = [*found.options.values(), *(found.behind or {}).values()]
        kinds = {kind.rstrip("*") for kind in found.words} | {option.kind for option in options if option.kind}
        assert {kind for kind in kinds if "|" not in kind} <= known, name


def test_every_subcommand_stands_below_a_program_that_is_listed() -> None:
    assert [name for name in PROGRAMS if " " in name and name.rpartition(" ")[0] not in PROGRAMS] == []


@pytest.mark.parametrize("words", PAST_IT)
def test_a_wildcard_takes_nothing_that_does_more_than_the_rule_says(words: str, parser: ShellParser) -> None:
    for text in PAST_IT[words]:
        allowed = judge(rule(words.split(" && ")[-1], REST), case(text), parser)
        assert allowed.verdict is Say.ASK, text


@pytest.mark.parametrize(
    ("asked", "allowed", "not_allowed"),
    [
        ("make test", "make test -j4", "make test deploy"),
        ("npm run test", "npm run test --silent", "npm run test deploy"),
        ("git log --oneline", "git log -p src/a.py", "git log --output=x"),
        ("tox -e py311", "tox -e py311 -v", "tox -e py311 -e publish"),
        ("rake spec", "rake spec --trace", "rake spec db:drop"),
        ("npx tsc --noEmit", "npx tsc --noEmit --skipLibCheck", "npx eslint ."),
        ("curl -s http://localhost:3000/a", "curl -s http://localhost:3000/a -i", "curl -s http://localhost:3000/b"),
        ("somebody --quick x", "somebody --quick x", "somebody --quick y"),
        ("git push origin main", "git push origin main", "git push origin dev"),
        ("rm -r build", "rm -r build", "rm -r src"),
        ("./gradlew test", "./gradlew test --offline", "./gradlew test publish"),
    ],
)
def test_a_grant_is_as_wide_as_its_grammar(asked: str, allowed: str, not_allowed: str, parser: ShellParser) -> None:
    assert granted(asked, asked, parser)
    assert granted(asked, allowed, parser)
    assert not granted(asked, not_allowed, parser)


def test_a_program_without_a_grammar_gets_a_wildcard_only_from_a_person(parser: ShellParser) -> None:
    asked = case("somebody --quick x")
    shape = decide_shape(asked, parser)
    assert shape == GrantShape((Shape(("somebody", "--quick", "x")),))
    found = suggest([PastQuestion(asked, True)] * 3, Policy(), parser)
    assert [str(one.shape) for one in found] == ["somebody --quick x"]
    assert judge(rule("somebody", REST), case("somebody -n 5 x"), parser).verdict is Say.ALLOW


def test_a_grant_says_exactly_what_it_allows(parser: ShellParser) -> None:
    shape = decide_shape(case("npm run test"), parser)
    assert isinstance(shape, GrantShape)
    said = describe(shape)
    assert said.startswith("`npm run test` with files of tests and these options: -s --silent")
    good, bad = examples(shape, case("npm run test"), parser)
    assert len(good) == len(bad) == 3 and good[0] == "npm run test"
    assert bad[0][0] == "npm run test deploy"
    assert all(why.startswith("Asked: ") and why.endswith(".") for _, why in bad)


def test_every_grammar_can_show_three_examples_of_each_kind(parser: ShellParser) -> None:
    for name in PROGRAMS:
        found = find_grammar(name)
        assert found is not None
        for text in found.match[:1] if name != "[" else ():  # which a shell may take for a file pattern
            quoted = " ".join(f"'{word}'" for word in text.split())
            shape = decide_shape(case(quoted), parser)
            if isinstance(shape, GrantShape) and shape.commands[0].words[-1] == REST:
                good, bad = examples(shape, case(quoted), parser)
                assert len(good) == 3 and len(bad) == 3, (text, good, bad)


def test_a_rule_for_everything_in_the_table_allows_no_attack(parser: ShellParser) -> None:
    """`attacks.txt`: one command a line, ⏎ for a line break; shapes of several agents' safety tests, and others."""
    named = ("npm run test", "make test", "just test", "gradle test", "pnpm test", "yarn test", "rake spec", "mvn test")
    run = ("npx tsc", "npx jest", "npx vitest", "npx eslint", "npx prettier", "python -m pytest", "python3 -m pytest")
    more = ("tox -e py311", "nox -s tests", "bundle exec rspec", "uv run pytest", "poetry run pytest", "service")
    shapes = [*PROGRAMS, *named, *run, *more, "curl -s https://example.com/*", "curl https://example.com/*"]
    everything = Policy(
        tuple(PolicyRule(f"r{at}", Say.ALLOW, Shape((*shape.split(), REST))) for at, shape in enumerate(shapes))
    )
    attacks = (Path(__file__).parent / "attacks.txt").read_text(encoding="utf-8").splitlines()
    assert len(attacks) > 700
    found = [text for text in attacks if judge(everything, case(text.replace("⏎", "\n")), parser).verdict is Say.ALLOW]
    assert found == []


def test_the_folder_ends_where_it_ends(parser: ShellParser) -> None:
    cat = rule("cat", REST)
    for text in ("cat a", f"cat {HERE}/a", "cat ./a/b", "cat a..b"):
        assert judge(cat, case(text), parser).verdict is Say.ALLOW, text
    for text in ("cat ..", "cat a/..", f"cat {HERE}/../x", f"cat {HERE}x", "cat /", "cat '~/x'", "cat host:x"):
        assert judge(cat, case(text), parser).verdict is Say.ASK, text
    assert judge(cat, case("cat /etc/passwd", "/"), parser).verdict is Say.ASK


def test_a_link_that_leads_out_of_the_folder_is_seen(tmp_path: Path, parser: ShellParser) -> None:
    room, outside = tmp_path / "room", tmp_path / "outside"
    (room / "sub").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_text("x")
    (room / "a").write_text("x")
    (room / "out").symlink_to(outside)
    (room / "file").symlink_to(outside / "secret")
    (room / "inner").symlink_to("a")
    (room / "sub" / "a").symlink_to(outside / "secret")
    (room / "circle").symlink_to("circle")
    both = Policy((*rule("cat", REST).rules, PolicyRule("cd", Say.ALLOW, Shape(("cd", REST)))))

    def verdict(text: str, folder: Path = room) -> Verdict:
        return judge(both, replace(case(text, str(folder)), leads=resolve_path), parser)

    for text in ("cat a", "cat inner", "cat new", f"cat '{room}/a'", "cat sub/new", "cd sub && cat new"):
        assert verdict(text).verdict is Say.ALLOW, text
    for text in ("cat file", "cat out/secret", "cat out/new", f"cat '{room}/file'", "cat sub/a", "cat circle"):
        assert "leads out of the folder" in verdict(text).sentence, text
    for text in ("cd sub && cat a", "cd out && cat secret", "cd sub || cd x; cat a"):
        assert verdict(text).verdict is Say.ASK, text
    (tmp_path / "link").symlink_to(room)
    assert verdict("cat a", tmp_path / "link").verdict is Say.ALLOW, "the folder itself may be called by a link"
    refuses = Policy((PolicyRule("no", Say.DENY, path=f"{outside}/**"), PolicyRule("r", Say.ALLOW, Shape(("x", REST)))))
    assert judge(refuses, replace(case("x file", str(room)), leads=resolve_path), parser).verdict is Say.DENY


def test_a_cd_within_the_folder_keeps_paths_certain_and_another_does_not(parser: ShellParser) -> None:
    both = Policy(
        (
            *rule("cat", REST).rules,
            PolicyRule("cd", Say.ALLOW, Shape(("cd", REST))),
            PolicyRule("up", Say.ALLOW, Shape(("cd", ".."))),
        )
    )
    assert judge(both, case("cd sub && cat a"), parser).verdict is Say.ALLOW
    assert judge(both, case(f"cd {HERE}/sub && cat a"), parser).verdict is Say.ALLOW
    assert judge(both, case("cd .. && cat a"), parser).verdict is Say.ASK
    assert judge(both, case("sh -c 'cd .. && cat a'"), parser).verdict is Say.ASK


def test_a_sentence_names_the_word_that_is_in_doubt(parser: ShellParser) -> None:
    tests = rule("make test", REST)
    verdict = judge(tests, case("make test deploy"), parser)
    assert verdict.word == "deploy"
    assert verdict.sentence == (
        "Asked: the wildcard of 'r' does not cover it: 'deploy' tells make what to do, so that a rule must name it."
    )
    verdict = judge(tests, case("make test $x"), parser)
    assert (verdict.word, verdict.sentence) == (
        "$x",
        "Asked: it is not certain what would run: there is a variable (`$x`).",
    )
    assert judge(tests, case("make test"), parser).sentence == "Allowed: every part of it is allowed by 'r'."


def test_what_a_wildcard_stands_for_can_be_said(parser: ShellParser) -> None:
    assert say_wildcard(Shape(("cat", REST))).startswith("takes only paths inside the folder and these options: -A")
    assert say_wildcard(Shape(("docker", "compose", "up", REST))).startswith("takes nothing, because 'up'")
    assert say_wildcard(Shape(("python", REST))).startswith("takes nothing, because python")
    assert say_wildcard(Shape(("somebody", REST))) == say_wildcard(Shape(("cat", "x"))) == ""


def test_suggested_rules_allow_an_agents_day(parser: ShellParser) -> None:
    """Before the grammars: 84 of the hundred, and 14 of the thirty of another day."""
    asked = [PastQuestion(case(text), True) for text in EVERYDAY["commands"] for _ in range(2)]
    found = suggest(asked, Policy(), parser)
    text = "\n".join(one.to_toml().replace('name = "', f'name = "{number}-', 1) for number, one in enumerate(found))
    policy = read_policy(text, parser, home="/home/me")
    assert len(EVERYDAY["commands"]) == 100
    refused = [text for text in EVERYDAY["commands"] if judge(policy, case(text), parser).verdict is not Say.ALLOW]
    assert refused == ["git checkout -b fix/login", "cd src && ls"]
    assert [text for text in EVERYDAY["again"] if judge(policy, case(text), parser).verdict is not Say.ALLOW] == []


def test_reading_a_command_is_cheap() -> None:
    words = ["git", "log", "--oneline", "-5", "--", *(f"src/a{number}.py" for number in range(2000))]
    assert len(read_words(words, WorkFolder(HERE)).needs) == len(words)


def test_a_script_of_sed_that_could_be_read_in_many_ways_does_not_stop_the_hub(parser: ShellParser) -> None:
    """Flags, line numbers and commands without a mark between them had four readings each: a hub thought for ever."""
    for script in ("s/a/b/11p" * 60 + "x", " " * 5000 + "x", "1" * 5000 + "x"):
        assert judge(rule("sed", REST), case(f"sed '{script}' notes.txt"), parser).verdict is not Say.ALLOW
