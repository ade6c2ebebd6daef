"""The configuration as text: what is shown can be read back, and a change touches one setting."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlasbridge.cli.config import change_setting, render_toml
from atlasbridge.core.errors import ConfigError

FILE = """# mine
top = 1

[prompts]
# how long
timeout_s = 600   # ten minutes
words = [
  "a",  # one
  "b",
]

[channels.web]
port = 8765

[[launchers]]
name = "x"
"""

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner.filter(lambda value: value is not None), max_size=3)
        | st.dictionaries(st.text(min_size=1, max_size=8), inner, max_size=3)
    ),
    max_leaves=12,
)


def without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_none(item) for name, item in value.items() if item is not None}
    return [without_none(item) for item in value] if isinstance(value, list) else value


@given(st.dictionaries(st.text(min_size=1, max_size=8), VALUES, max_size=4))
def test_whatever_is_shown_is_toml_and_means_the_same(values: dict[str, Any]) -> None:
    assert tomllib.loads("\n".join(render_toml(values))) == without_none(values)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("top",), 2),
        (("prompts", "timeout_s"), 30.5),
        (("prompts", "words"), ["c"]),
        (("prompts", "new"), 'quo"te'),
        (("channels", "web", "enabled"), False),
        (("channels", "telegram", "bot_token"), "1:a"),
        (("fresh",), True),
    ],
)
def test_one_setting_changes_and_everything_else_stays(path: tuple[str, ...], value: Any) -> None:
    changed = change_setting(FILE, path, value)
    expected = tomllib.loads(FILE)
    table = expected
    for name in path[:-1]:
        table = table.setdefault(name, {})
    table[path[-1]] = value
    assert tomllib.loads(changed) == expected
    assert "# mine" in changed and "# how long" in changed


@pytest.mark.parametrize(
    "path", [("top",), ("prompts", "timeout_s"), ("prompts", "words"), ("channels", "web", "port")]
)
def test_a_setting_is_taken_out_and_everything_else_stays(path: tuple[str, ...]) -> None:
    changed = tomllib.loads(change_setting(FILE, path))
    before = tomllib.loads(FILE)
    for name in path[:-1]:
        changed, before = changed[name], before[name]
    del before[path[-1]]
    assert changed == before


def test_what_is_not_there_cannot_be_taken_out_and_odd_files_are_left_to_a_person() -> None:
    with pytest.raises(ConfigError, match="is not set"):
        change_setting(FILE, ("prompts", "nothing"))
    with pytest.raises(ConfigError, match="without touching more"):
        change_setting("prompts = { timeout_s = 1 }\n", ("prompts", "timeout_s"), 2)
