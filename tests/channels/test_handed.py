"""Files that a chat hands over: into a folder of their own, over nothing, through no link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from atlasbridge.channels.handed import MOST_IN, MOST_OUT, NotHanded, read_inside, save_inside


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
