"""Dialect files: the packaged ones are sound, a person's own extend them, a broken one is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from atlasbridge.adapters.dialect_files import FILE, TOOLS, available, dialect_for, load_dialect, parse_dialect
from atlasbridge.core.errors import DialectError

NAMES = sorted(path.parent.name for path in TOOLS.glob(f"*/{FILE}"))


@pytest.mark.parametrize("name", NAMES)
def test_every_packaged_dialect_passes_the_checks_of_a_foreign_one(name: str) -> None:
    parsed = parse_dialect((TOOLS / name / FILE).read_text("utf-8"), name)
    assert parsed.name == name
    assert parsed.versions or name in ("generic", "openai")


@pytest.mark.parametrize("name", NAMES)
def test_rules_have_names_of_their_own(name: str) -> None:
    ids = [rule.id for rule in parse_dialect((TOOLS / name / FILE).read_text("utf-8"), name).rules]
    assert len(ids) == len(set(ids))


def test_a_tool_extends_the_generic_rules() -> None:
    claude, generic = load_dialect("claude"), load_dialect("generic")
    assert len(claude.rules) > len(generic.rules)
    assert [rule.priority for rule in claude.rules] == sorted((rule.priority for rule in claude.rules), reverse=True)


def test_executables_find_their_dialect() -> None:
    assert dialect_for("/usr/bin/claude") == "claude"
    assert dialect_for("my-own-tool") == "generic"


@pytest.mark.parametrize(("version", "dialect"), [("1.12.0", "generic"), ("2.1.0", "kimi"), ("3.0.0", "kimi")])
def test_two_programs_of_one_name_are_told_apart_by_version(tmp_path: Path, version: str, dialect: str) -> None:
    kimi = tmp_path / "bin" / "kimi"
    kimi.parent.mkdir()
    kimi.write_text("#!/bin/sh\nexit 99\n")  # must never be started
    kimi.chmod(0o755)
    (tmp_path / "lib" / "python3.13" / "site-packages" / f"kimi_cli-{version}.dist-info").mkdir(parents=True)
    assert dialect_for(str(kimi)) == dialect


def test_a_person_can_add_a_dialect_without_code(tmp_path: Path) -> None:
    own = 'name = "mytool"\nextends = "generic"\ncommands = ["mt"]\n'
    own += '[[rule]]\nid = "mine"\ntype = "yes_no"\npattern = "shall we dance"\n'
    (tmp_path / "mytool.toml").write_text(own)
    assert "mytool" in available(tmp_path)
    assert dialect_for("mt", tmp_path) == "mytool"
    assert any(rule.id == "mine" for rule in load_dialect("mytool", tmp_path).rules)


def test_a_person_can_extend_a_packaged_dialect_under_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "claude.toml").write_text('name = "claude"\nextends = "claude"\nversions = ["9"]\n')
    merged = load_dialect("claude", tmp_path)
    assert merged.versions == ("9",)
    assert any(rule.id == "claude-idle" for rule in merged.rules)


BROKEN = [
    ('name = "x"\nfoo = 1\n', "line 2", "unknown setting 'foo'"),
    ('name = "x"\n[[rule]]\nid = "a"\ntype = "yes_no"\npattern = "("\n', "line 2", "not a valid pattern"),
    ('name = "x"\n\n[[rule]]\nid = "a"\ntype = "maybe"\npattern = "b"\n', "line 3", "`type` is 'maybe'"),
    ('name = "x"\n[[rule]]\nid = "a"\ntype = "yes_no"\n', "line 2", "lacks pattern"),
    ('name = "x"\n[[menu]]\nid = "a"\nchoose = "magic"\n', "line 2", "`choose` is 'magic'"),
    ('name = "x"\n[[rule]]\nid = 3\ntype = "yes_no"\npattern = "b"\n', "line 2", "wrong kind"),
    ('name = "x"\ncounting = "no list"\n', "line 2", "a list of texts"),
    ('name = "x"\n[rule]\nid = "a"\n', "line 2", "double brackets"),
    ('name = \n', "line 1", "Invalid value"),
    ('versions = []\n', "", "`name` must be a text"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "reason"), BROKEN)
def test_a_broken_file_is_refused_with_its_line_and_the_reason(text: str, line: str, reason: str) -> None:
    with pytest.raises(DialectError) as caught:
        parse_dialect(text, "own.toml")
    assert line in str(caught.value)
    assert reason in str(caught.value)
    assert caught.value.hint


def test_a_file_must_be_called_as_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text('name = "two"\n')
    with pytest.raises(DialectError, match="called 'two'"):
        load_dialect("one", tmp_path)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(DialectError) as caught:
        load_dialect("nothing")
    assert "generic" in caught.value.hint


def test_a_second_dialog_must_be_named_before_anything_is_typed_into_it() -> None:
    menu = '[[menu]]\nid = "x"\nfollow = "^Always"\nfollow_keys = "{}"\n'
    with pytest.raises(DialectError, match="must say what its second dialog shows"):
        parse_dialect('name = "x"\n' + menu.format("enter"), "x.toml")
    assert parse_dialect('name = "x"\n' + menu.format("enter?Are_you_sure enter"), "x.toml").menus
