"""Patterns that are compiled later do what compiled ones do, and none of ours is broken."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from typing import Any

import pytest

from atlasbridge import core
from atlasbridge.core import patterns
from atlasbridge.core.patterns import compile_next, lazy


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What has been compiled so far."""
    seen: list[Any] = []
    compile_now = re.compile

    def compile_and_note(source: Any, flags: int = 0) -> re.Pattern[Any]:
        seen.append(source)
        return compile_now(source, flags)

    monkeypatch.setattr(patterns.re, "compile", compile_and_note)  # type: ignore[attr-defined]
    monkeypatch.setattr(patterns, "_waiting", type(patterns._waiting)())
    return seen


def test_a_pattern_is_compiled_when_it_is_first_used_and_only_then(compiled: list[Any]) -> None:
    word = lazy(r"(?P<word>[a-z]+)", re.IGNORECASE)
    assert compiled == []
    assert [match["word"] for match in word.finditer("Yes or NO")] == ["Yes", "or", "NO"]
    assert word.fullmatch("two words") is None
    assert compiled == [r"(?P<word>[a-z]+)"]


def test_it_does_all_that_a_pattern_does() -> None:
    one, other = lazy(rb"(\d)(,)?"), re.compile(rb"(\d)(,)?")
    text = b"1,2 3"
    assert one.match(text)[0] == other.match(text)[0]  # type: ignore[index]
    assert one.search(text, 1)[0] == other.search(text, 1)[0]  # type: ignore[index]
    assert one.findall(text) == other.findall(text)
    assert one.split(text) == other.split(text)
    assert one.sub(rb"<\1>", text, count=2) == other.sub(rb"<\1>", text, count=2)
    assert (one.pattern, one.flags, one.groups) == (other.pattern, other.flags, other.groups)
    with pytest.raises(AttributeError):
        one.no_such_thing  # type: ignore[attr-defined]  # noqa: B018


def test_those_that_wait_are_compiled_one_by_one(compiled: list[Any]) -> None:
    lazy("a")
    lazy("b")
    assert compile_next()
    assert compiled == ["a"]
    assert compile_next()
    assert not compile_next()
    assert compiled == ["a", "b"]


def test_every_pattern_of_ours_compiles() -> None:
    for module in pkgutil.walk_packages(core.__path__, "atlasbridge.core."):
        if not module.name.endswith(("windows", "__main__")):
            importlib.import_module(module.name)
    ours = [module for name, module in list(sys.modules.items()) if name.startswith("atlasbridge.")]
    made = [item for module in ours for item in vars(module).values() if isinstance(item, patterns.Lazy)]
    assert len(made) > 50
    for item in made:
        assert item.compile().pattern == item.source
