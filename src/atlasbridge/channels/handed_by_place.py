"""Files of a session's folder where a path cannot be opened part by part (Windows): a file is opened first, and then
the system is asked where that is which was opened.  Neither `..`, a link that is changed meanwhile, a short name nor
a name of a device leads out, because nothing is read or written before.

What may pass at all is `handed`'s.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path, PurePath, PureWindowsPath

from atlasbridge.core.system import NO_WAIT, OWN_FILE

_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*(\..*)?", re.IGNORECASE)
_NO_NAME = re.compile(r'[\x00-\x1f<>:"|?*\\/]|[. ]$')
_LONGEST = 32768
_LONG, _LONG_SHARE = "\\\\?\\", "\\\\?\\UNC\\"

Placed = Callable[[int], str]


class OutsideFolder(OSError):
    """What was opened is not below the folder, or nobody can tell."""


def is_plain_name(part: str) -> bool:
    """Whether a part of a path can be the name of a file on Windows, and of nothing else: no device, no second stream,
    no drive, and not a name that the system takes for another one."""
    return bool(part) and part not in (".", "..") and not _NO_NAME.search(part) and not _DEVICE.fullmatch(part)


def safe_name(name: str) -> str:
    """A name that is one there, too."""
    name = name.rstrip(". ") or "file"
    return f"_{name}" if _DEVICE.fullmatch(name) else name


def plain_place(path: str) -> str:
    """One spelling of what the system says: without the mark of long paths."""
    if path.startswith(_LONG_SHARE):
        return "\\\\" + path[len(_LONG_SHARE) :]
    return path.removeprefix(_LONG)


def parts_below(folder: PurePath, place: PurePath) -> tuple[str, ...]:
    """The way from the folder to the place; empty: it does not lie below."""
    return place.relative_to(folder).parts if place != folder and place.is_relative_to(folder) else ()


def open_below(folder: str, parts: list[str], placed: Placed | None = None) -> tuple[int, tuple[str, ...]]:
    """(descriptor, its real way below the folder)."""
    if not all(is_plain_name(part) for part in parts):
        raise FileNotFoundError(2, "No such file")
    root = _real(folder)
    file = os.open(root.joinpath(*parts), os.O_RDONLY | OWN_FILE | NO_WAIT)
    return file, _way_of(file, root, placed)


def create_below(folder: str, into: str, name: str, placed: Placed | None = None) -> int:
    """A new file, empty; FileExistsError: one of that name is there."""
    root = _real(folder)
    own = root / into
    own.mkdir(mode=0o700, exist_ok=True)
    if _real(str(own)) != own:
        raise OutsideFolder(20, "a link stands in the folder's place")
    path = own / name
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | OWN_FILE, 0o600)
    try:
        way = _way_of(file, root, placed)
        if way[:1] != (into,) or len(way) != 2:
            os.close(file)
            raise OutsideFolder(20, "a link stands in the folder's place")
    except OutsideFolder:
        path.unlink(missing_ok=True)  # it is empty, and was not there before
        raise
    return file


def _way_of(file: int, root: Path, placed: Placed | None) -> tuple[str, ...]:
    try:
        place = (placed or place_of)(file)
    except OSError:
        place = ""
    way = parts_below(root, type(root)(plain_place(place))) if place else ()
    if not way:
        os.close(file)
        raise OutsideFolder(20, "it is not inside the folder")
    return way


def _real(folder: str) -> Path:
    return Path(plain_place(os.path.realpath(folder, strict=True)))


def place_of(file: int) -> str:
    """Where an open file is, by the system's own word."""
    if sys.platform != "win32":
        return os.readlink(f"/proc/self/fd/{file}")
    import ctypes
    import msvcrt

    kernel = ctypes.WinDLL("kernel32")
    kernel.GetFinalPathNameByHandleW.argtypes = [ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_ulong, ctypes.c_ulong]
    room = ctypes.create_unicode_buffer(_LONGEST)
    length = kernel.GetFinalPathNameByHandleW(msvcrt.get_osfhandle(file), room, _LONGEST, 0)
    return room.value if 0 < length < _LONGEST else ""


def windows_parts(folder: str, path: str) -> list[str] | None:
    """A path as a person writes it there, with either slash, relative or below the folder; None: it leads elsewhere."""
    wanted = PureWindowsPath(path.strip())
    if wanted.drive or wanted.root:
        way = parts_below(PureWindowsPath(folder), wanted)
        return list(way) or None
    return list(wanted.parts)
