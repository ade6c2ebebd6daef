"""Files that people and projects write: whatever one holds, its reader says what is wrong, and nothing breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.tier import times

from atlasbridge.adapters.dialect_files import parse_dialect
from atlasbridge.bootstrap import load_configuration
from atlasbridge.channels.registry import BUILT_IN, channel_settings
from atlasbridge.config.load import setting_paths, table_model
from atlasbridge.config.model import AtlasBridgeConfig
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import Home
from atlasbridge.core.policy.reader import read_policy
from atlasbridge.core.recognition.dialect import Dialect, Mark, MenuRule, Rule, SubjectRule
from atlasbridge.core.routing.shell_parser import ShellParser

VALUES = (
    *("1", "-1", "true", "1.5", "nan", "9" * 5000, "1979-05-27", "1979-05-27T07:32:00Z"),
    *('""', '"x"', '"(a"', '"**"', '"\\u0000"', "[]", "[1]", '["x"]', '["a","**","b"]', '[["x"]]'),
    *("{}", "{a=1}", "[{a=1}]", "[" * 5000, "[" * 200 + "]" * 200),
)
SECTIONS = {"busy": Mark, "title": Mark, "rule": Rule, "menu": MenuRule, "subject": SubjectRule}
NEEDED = {"id": '"x"', "pattern": '"x"', "menus": '"x"', "type": '"yes_no"', "kind": '"command"'}
RULE = {"name": '"r"', "verdict": '"ask"'}
RULE_KEYS = (
    *RULE,
    "command",
    "kind",
    "path",
    "host",
    "tool",
    "folder",
    "label",
    "reason",
    "person",
    "match",
    "no_match",
)


def written(settings: dict[str, str]) -> str:
    return "".join(f"{name} = {value}\n" for name, value in settings.items())


def dialects() -> Iterator[str]:
    for value in VALUES:
        yield from (f'name = "x"\n{key} = {value}\n' for key in (*Dialect.__annotations__, "words") if key != "name")
        yield f"name = {value}\n"
        yield from (f'name = "x"\n[words]\n{key} = {value}\n' for key in ("refuse", "always", "secret"))
        for section, kind in SECTIONS.items():
            for key in kind.__annotations__:
                needed = {name: one for name, one in NEEDED.items() if name in kind.__annotations__}
                yield f'name = "x"\n[[{section}]]\n{written({**needed, key: value})}'


def policies() -> Iterator[str]:
    for value in VALUES:
        yield f"rule = {value}\n"
        for key in (*RULE_KEYS, "approvals", "proof"):
            yield "[[rule]]\n" + written({**RULE, key: value})
            yield "[[rule]]\n" + written({**RULE, "command": '["a"]', key: value})


def configurations() -> Iterator[str]:
    paths = setting_paths(AtlasBridgeConfig)
    for name in BUILT_IN:
        paths += setting_paths(table_model(name, channel_settings(name)), ("channels", name))
    sections = {path[:-1] for path in paths if path[:-1]}
    steps = (0, 7)[: times(2, quickly=1)]
    for number, path in enumerate(paths):
        yield from (f"{'.'.join(path)} = {VALUES[(number + more) % len(VALUES)]}\n" for more in steps)
    for value in VALUES[:: times(1, quickly=4)]:  # instead of a table
        yield from (f"{'.'.join(section)} = {value}\n" for section in sections)


@pytest.fixture
def readers(tmp_path: Path) -> Iterator[dict[str, tuple[Iterator[str], Callable[[str], object]]]]:
    parser, home = ShellParser(), Home(tmp_path)

    def configured(text: str) -> object:
        home.config.write_text(text)
        return load_configuration(home, {})

    yield {
        "dialect": (dialects(), lambda text: parse_dialect(text, "x.toml")),
        "policy": (policies(), lambda text: read_policy(text, parser, tightens=True)),
        "configuration": (configurations(), configured),
    }
    parser.close()


@pytest.mark.parametrize("kind", ["dialect", "policy", "configuration"])
def test_a_file_is_read_or_refused_with_a_reason(
    kind: str, readers: dict[str, tuple[Iterator[str], Callable[[str], object]]]
) -> None:
    texts, read = readers[kind]
    refused, broken = 0, []
    for text in texts:
        try:
            read(text)
        except AtlasBridgeError:
            refused += 1
        except Exception as error:  # what this test looks for
            broken.append(f"{text[:80]!r}: {type(error).__name__}: {error}")
    assert broken == []
    assert refused > 100
