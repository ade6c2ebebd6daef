"""What can be started remotely: only in allowed folders, with further words only where the configuration says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from atlasbridge.core.daemon.remote_launch import Launcher
from atlasbridge.core.errors import ConfigError


class Started:
    def __init__(self) -> None:
        self.calls: list[tuple[tuple[str, ...], str, str]] = []

    async def __call__(self, command: tuple[str, ...], folder: str, name: str) -> str:
        self.calls.append((command, folder, name))
        return "an-id"


@pytest.fixture
def started() -> Started:
    return Started()


@pytest.fixture
def launcher(tmp_path: Path, started: Started) -> Launcher:
    for name in ("home", "src/shop", "src-other", "etc"):
        (tmp_path / name).mkdir(parents=True)
    return Launcher("claude", ("claude",), str(tmp_path / "home"), started, (str(tmp_path / "src"),), True)


async def test_without_a_wish_it_starts_where_it_is_configured(
    launcher: Launcher, started: Started, tmp_path: Path
) -> None:
    assert await launcher.launch("", (), "") == "an-id"
    assert started.calls == [(("claude",), str(tmp_path / "home"), "")]


async def test_a_folder_below_an_allowed_one_words_and_a_name_are_passed_on(
    launcher: Launcher, started: Started, tmp_path: Path
) -> None:
    await launcher.launch(str(tmp_path / "src" / "shop"), ("-p", "two words"), "shop\u202e")
    assert started.calls == [(("claude", "-p", "two words"), str(tmp_path / "src" / "shop"), "shop<U+202E>")]


@pytest.mark.parametrize("folder", ["etc", "src/../etc", "src-other", "src/link", "src/shop/../../etc"])
async def test_no_other_folder_is_reached_whatever_it_is_called(
    launcher: Launcher, started: Started, tmp_path: Path, folder: str
) -> None:
    (tmp_path / "src" / "link").symlink_to(tmp_path / "etc")
    with pytest.raises(ConfigError, match="is not a folder in which"):
        await launcher.launch(f"{tmp_path}/{folder}", (), "")
    assert started.calls == []


async def test_a_folder_that_is_not_there_is_named(launcher: Launcher, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        await launcher.launch(str(tmp_path / "src" / "none"), (), "")


@pytest.mark.parametrize("words", [("a\0b",), ("x",) * 65])
async def test_words_that_no_program_takes_are_refused(launcher: Launcher, words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError):
        await launcher.launch("", words, "")


async def test_words_and_folders_are_off_until_the_configuration_allows_them(tmp_path: Path, started: Started) -> None:
    strict = Launcher("claude", ("claude",), str(tmp_path), started)
    with pytest.raises(ConfigError, match="takes no arguments"):
        await strict.launch("", ("--yes",), "")
    with pytest.raises(ConfigError, match="is not a folder in which"):
        await strict.launch(str(tmp_path.parent), (), "")
    assert started.calls == []


def test_known_folders_are_offered_where_they_are_allowed(launcher: Launcher, tmp_path: Path) -> None:
    shop, etc = str(tmp_path / "src" / "shop"), str(tmp_path / "etc")
    told = launcher.described([shop, etc, shop])
    assert (told["recent"], told["arguments"], told["folders"]) == ([shop], True, [str(tmp_path / "src")])
