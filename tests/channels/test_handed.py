"""Files that a chat hands over: into a folder of their own, over nothing, through no link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from atlasbridge.channels import files
from atlasbridge.channels.files import (
    MOST_IN,
    MOST_OUT,
    NotHanded,
    is_plain_name,
    open_below,
    plain_place,
    read_inside,
    safe_name,
    save_inside,
    windows_parts,
)


@pytest.fixture(params=["part by part", "by place"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """As on Unix, and as where nothing can be opened below a folder: the same holds."""
    monkeypatch.setattr(files, "BY_PARTS", request.param == "part by part")
    return str(request.param)


def test_what_comes_in_overwrites_nothing_and_keeps_to_its_folder(tmp_path: Path) -> None:
    assert save_inside(str(tmp_path), "a.png", b"1") == "from-chat/a.png"
    assert save_inside(str(tmp_path), "a.png", b"2") == "from-chat/a-1.png"
    for name in ("../../evil.sh", "/etc/passwd", "..", ".bashrc", "x\\..\\y.txt", "a\nb", "", "-rf"):
        where = save_inside(str(tmp_path), name, b"3")
        path = (tmp_path / where).resolve()
        assert path.parent == tmp_path / "from-chat" and path.name[0] not in ".-"
    assert (tmp_path / "from-chat" / "a.png").read_bytes() == b"1"
    assert {item.name for item in tmp_path.iterdir()} == {"from-chat"}
    assert (tmp_path / "from-chat" / "a.png").stat().st_mode & 0o777 == 0o600


def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir(), outside.mkdir()
    (inside / "from-chat").symlink_to(outside)
    with pytest.raises(NotHanded):
        save_inside(str(inside), "a.txt", b"1")
    assert list(outside.iterdir()) == []
    with pytest.raises(NotHanded):
        save_inside(str(outside), "big", b"x" * (MOST_IN + 1))


def test_pipes_hard_links_and_large_files_do_not_leave(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "one").write_text("x")
    os.link(tmp_path / "one", tmp_path / "two")
    (tmp_path / "big").write_bytes(b"x" * (MOST_OUT + 1))
    (tmp_path / "empty").touch()
    for name in ("pipe", "two", "big", "empty", "", "a\0b"):
        with pytest.raises(NotHanded):
            read_inside(str(tmp_path), name)


def test_a_picture_is_not_searched_for_words(tmp_path: Path) -> None:
    content = b"\x89PNG\0ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    (tmp_path / "a.png").write_bytes(content)
    assert read_inside(str(tmp_path), str(tmp_path / "a.png")) == ("a.png", content)


def test_no_link_leads_out(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir(), outside.mkdir()
    (outside / "private.txt").write_text("not for anybody")
    (inside / "file.txt").symlink_to(outside / "private.txt")
    (inside / "folder").symlink_to(outside)
    for path in ("file.txt", "folder/private.txt", "../out/private.txt", str(outside / "private.txt")):
        with pytest.raises(NotHanded):
            read_inside(str(inside), path)


def test_a_link_that_is_put_there_at_the_last_moment_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a path is opened at once, what was opened is asked where it is, before a byte of it is read or written."""
    inside, outside = tmp_path / "in", tmp_path / "out"
    (inside / "deep").mkdir(parents=True), outside.mkdir()
    (inside / "deep" / "a.txt").write_text("mine")
    (outside / "a.txt").write_text("not for anybody")
    really_open = os.open

    def swapped(path: str | Path, *given: int) -> int:
        for name in ("deep", "from-chat"):
            if (inside / name).is_dir() and not (inside / name).is_symlink():
                (inside / name).rename(tmp_path / f"moved-{name}")
                (inside / name).symlink_to(outside)
        return really_open(path, *given)

    monkeypatch.setattr(os, "open", swapped)
    with pytest.raises(OSError):
        open_below(str(inside), ["deep", "a.txt"])
    with pytest.raises(OSError):
        files.create_below(str(inside), "from-chat", "new.txt")
    assert [path.name for path in outside.iterdir()] == ["a.txt"]


def test_a_secret_is_known_by_its_real_name(tmp_path: Path) -> None:
    (tmp_path / "id_rsa").write_text("x")
    (tmp_path / "plain").symlink_to(tmp_path / "id_rsa")
    with pytest.raises(NotHanded):
        read_inside(str(tmp_path), "plain")


def test_where_nobody_can_tell_where_a_file_is_nothing_passes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    for placed in (lambda file: "", lambda file: str(tmp_path), lambda file: "/a.txt"):
        with pytest.raises(OSError):
            open_below(str(tmp_path), ["a.txt"], placed)
        with pytest.raises(OSError):
            files.create_below(str(tmp_path), "from-chat", "b.txt", placed)
    assert list((tmp_path / "from-chat").iterdir()) == []


@pytest.mark.parametrize(
    "part",
    [
        "nul",
        "CON",
        "Com1.txt",
        "lpt9",
        "aux .log",
        "a:b",
        "id_rsa.",
        "id_rsa ",
        "a*",
        "c:",
        "CONIN$",
        "x\\y",
        "a\tb",
        "..",
        "",
    ],
)
def test_what_windows_takes_for_something_else_is_no_name(part: str) -> None:
    assert not is_plain_name(part)


@pytest.mark.parametrize(
    ("name", "safe"), [("nul.txt", "_nul.txt"), ("a.", "a"), (" . ", "file"), ("console.txt", "console.txt")]
)
def test_a_file_from_a_chat_gets_a_name_that_is_one_everywhere(name: str, safe: str) -> None:
    assert safe_name(name) == safe and is_plain_name(safe_name(name))


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("src\\a.py", ["src", "a.py"]),
        ("src/a.py", ["src", "a.py"]),
        ("C:\\Shop\\x.txt", ["x.txt"]),
        ("c:/shop/x.txt", ["x.txt"]),
        ("C:x.txt", None),
        ("D:\\Shop\\x.txt", None),
        ("\\\\server\\share\\x", None),
        ("\\x.txt", None),
        ("C:\\Shops\\x.txt", None),
        ("", []),
    ],
)
def test_a_path_is_read_as_windows_reads_it(path: str, parts: list[str] | None) -> None:
    assert windows_parts("C:\\Shop", path) == parts


def test_a_place_has_one_spelling() -> None:
    assert plain_place("\\\\?\\C:\\Work\\a") == "C:\\Work\\a"
    assert plain_place("\\\\?\\UNC\\server\\share\\a") == "\\\\server\\share\\a"
