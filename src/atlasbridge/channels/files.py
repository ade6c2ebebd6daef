"""Transfers files between a chat and a session's folder. It never reads or writes outside of that folder.

Each part of a path is opened relative to the previous one, and links are refused, so neither `..` nor a link that is
replaced during the call leads outside. Files that look like secrets are not sent.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import BinaryIO

from atlasbridge.channels.language import t
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.prompt.redact import redact
from atlasbridge.core.system import NO_WAIT, OWN_FILE

# For systems that cannot open a path part by part (Windows): open the file first, then ask the system where the opened
# file is. This happens before anything is read or written, so `..`, replaced links, short names and device names cannot
# lead outside of the folder. Which files are allowed is checked further below.

_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*(\..*)?", re.IGNORECASE)
_NO_NAME = re.compile(r'[\x00-\x1f<>:"|?*\\/]|[. ]$')
_LONGEST = 32768
_LONG, _LONG_SHARE = "\\\\?\\", "\\\\?\\UNC\\"

Placed = Callable[[int], str]


class OutsideFolder(OSError):
    """The opened file is not below the folder, or its location is unknown."""


def is_plain_name(part: str) -> bool:
    """Whether a part of a path can only be a file name on Windows: not a device, an alternate stream or a drive, and
    not a name that Windows would change."""
    return bool(part) and part not in (".", "..") and not _NO_NAME.search(part) and not _DEVICE.fullmatch(part)


def safe_name(name: str) -> str:
    """Return a name that is valid on Windows, too."""
    name = name.rstrip(". ") or "file"
    return f"_{name}" if _DEVICE.fullmatch(name) else name


def plain_place(path: str) -> str:
    """Normalise a path from the system: remove the prefix of long paths."""
    if path.startswith(_LONG_SHARE):
        return "\\\\" + path[len(_LONG_SHARE) :]
    return path.removeprefix(_LONG)


def parts_below(folder: PurePath, place: PurePath) -> tuple[str, ...]:
    """Return the path from the folder to the place, or an empty tuple if it is not below the folder."""
    return place.relative_to(folder).parts if place != folder and place.is_relative_to(folder) else ()


def open_below(folder: str, parts: list[str], placed: Placed | None = None) -> tuple[int, tuple[str, ...]]:
    """Return the descriptor and its real path below the folder."""
    if not all(is_plain_name(part) for part in parts):
        raise FileNotFoundError(2, "No such file")
    root = _real(folder)
    file = os.open(root.joinpath(*parts), os.O_RDONLY | OWN_FILE | NO_WAIT)
    return file, _way_of(file, root, placed)


def create_below(folder: str, into: str, name: str, placed: Placed | None = None) -> int:
    """Create an empty file. Raises FileExistsError if the name exists."""
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
        path.unlink(missing_ok=True)  # it is empty, and we created it
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
    """Ask the system for the path of an open file."""
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
    """Split a path that a person typed: either slash, relative or below the folder. None if it leads elsewhere."""
    wanted = PureWindowsPath(path.strip())
    if wanted.drive or wanted.root:
        way = parts_below(PureWindowsPath(folder), wanted)
        return list(way) or None
    return list(wanted.parts)


MOST_IN = MOST_OUT = 10 * 1024 * 1024
MOST_TRIES = 1000
LOOK = 8192  # bytes that are read to tell a text from a binary file
INTO = "from-chat"  # the folder inside the session's folder that receives files from a chat
NAME_LIMIT = 80
BY_PARTS = hasattr(os, "O_NOFOLLOW")
_FOLDER = sum(getattr(os, name, 0) for name in ("O_RDONLY", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC"))
# Hidden files often contain credentials; these few do not.
_HARMLESS_HIDDEN = re.compile(
    r"\.(git(ignore|attributes|modules|hub|lab-ci\.ya?ml)|editorconfig|dockerignore|prettier(rc|ignore).*|eslint(rc|ignore).*"
    r"|clang-(format|tidy)|flake8|pylintrc|coveragerc|pre-commit-config\.ya?ml|python-version|nvmrc|tool-versions|nojekyll)"
)
_SECRET_NAME = re.compile(
    r"id_[a-z0-9]+|.*\.(pem|key|p8|p12|pfx|ppk|asc|gpg|pgp|age|jks|keystore|kdbx?|psafe3|opvault|agilekeychain|ovpn|mobileconfig"
    r"|tfstate|tfvars|htpasswd|rdp|keytab|wallet|db|db-wal|db-shm|sqlite3?|har|dump|core)"
    r"|.*(credential|secret|passw(or)?d|token|apikey|api_key).*\.(json|ya?ml|toml|ini|cfg|conf|txt|csv|env|properties|xml)"
    r"|(credentials?|secrets?|passwords?|tokens?|shadow|htpasswd|kubeconfig|wp-config\.php|local\.settings\.json)"
    r"|.*\.env(\..*)?|atlasbridge\.db.*|audit\.(log|head)"
)
# Content that is refused whatever the file is called: a database, a key store, an encrypted file or a memory dump.
_SECRET_BEGINS = (
    *(b"SQLite format 3\0", b"\x03\xd9\xa2\x9a", b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce", b"age-encryption.org"),
    *(b"PuTTY-User-Key-File", b"openssh-key-v1", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04"),
)
_WIDE = (b"\xff\xfe", b"\xfe\xff")  # how a UTF-16 text starts
_BAD_IN_NAME = re.compile(r"[^\w.()+-]+")


class NotHanded(Exception):
    """Why a file is not transferred; the text is for the person."""


def too_large() -> str:
    return t("A file may have at most {count} MB.", count=MOST_IN // 2**20)


def read_inside(folder: str, path: str) -> tuple[str, bytes]:
    """Return the name and content of a regular file below `folder`."""
    _refuse_elsewhere(folder)
    parts = _parts(folder, path)
    _refuse_secret(parts)
    file, way = _open_part_by_part(folder, parts) if BY_PARTS else _open_by_place(folder, parts)
    try:
        _refuse_secret(way)  # its real name can be a different one
        _check(os.fstat(file))
        with os.fdopen(os.dup(file), "rb") as opened:
            return parts[-1], _content(opened)
    finally:
        os.close(file)


def save_inside(folder: str, name: str, content: bytes) -> str:
    """Save a file in the `from-chat` folder without overwriting anything. Returns its path relative to the session's
    folder."""
    _refuse_elsewhere(folder)
    if len(content) > MOST_IN:
        raise NotHanded(too_large())
    safe = _BAD_IN_NAME.sub("_", PurePosixPath(name.replace("\\", "/")).name).lstrip(".-")[-NAME_LIMIT:] or "file"
    try:
        if BY_PARTS:
            return f"{INTO}/{_save_part_by_part(folder, safe, content)}"
        return f"{INTO}/{_write_new(safe_name(safe), content, partial(create_below, folder, INTO))}"
    except OSError as fault:
        raise NotHanded(t("It could not be saved: {fault}.", fault=fault.strerror)) from None


def _refuse_elsewhere(folder: str) -> None:
    """A folder of another machine must never be mistaken for a folder of the same name here."""
    if not folder:
        raise NotHanded(t("That session is on another machine: its files pass through that machine's own chat only."))


def _refuse_secret(parts: Sequence[str]) -> None:
    names = [part.lower() for part in parts]
    if any(
        _SECRET_NAME.fullmatch(name) or (name[:1] == "." and not _HARMLESS_HIDDEN.fullmatch(name)) for name in names
    ):
        raise NotHanded(t("Files of that name contain secrets and are not sent to a chat."))


def _open_by_place(folder: str, parts: list[str]) -> tuple[int, Sequence[str]]:
    try:
        return open_below(folder, parts)
    except OSError as fault:
        raise NotHanded(_why(fault)) from None


def _open_part_by_part(folder: str, parts: list[str]) -> tuple[int, Sequence[str]]:
    where = _open_folder(folder, parts[:-1])
    try:
        return os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=where), parts
    except OSError as fault:
        raise NotHanded(_why(fault)) from None
    finally:
        os.close(where)


def _save_part_by_part(folder: str, name: str, content: bytes) -> str:
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        where = _own_folder(root)
    finally:
        os.close(root)
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return _write_new(name, content, lambda tried: os.open(tried, new, 0o600, dir_fd=where))
    finally:
        os.close(where)


def _own_folder(root: int) -> int:
    try:
        os.mkdir(INTO, 0o700, dir_fd=root)
    except FileExistsError:
        pass
    return os.open(INTO, _FOLDER, dir_fd=root)


def _write_new(name: str, content: bytes, create: Callable[[str], int]) -> str:
    stem, dot, ending = name.rpartition(".")
    for number in range(MOST_TRIES):
        tried = name if number == 0 else f"{stem}-{number}.{ending}" if dot else f"{name}-{number}"
        try:
            file = create(tried)
        except FileExistsError:
            continue
        with os.fdopen(file, "wb") as opened:
            opened.write(content)
        return tried
    raise NotHanded(t("Too many files of that name are there."))


def _parts(folder: str, path: str) -> list[str]:
    parts = posix_parts(folder, path) if os.name == "posix" else windows_parts(folder, path)
    if parts == []:
        raise NotHanded(t("Name the file."))
    if parts is None or ".." in parts or "\0" in path:
        raise NotHanded(t("Only files inside the session's folder can be sent."))
    return parts


def posix_parts(folder: str, path: str) -> list[str] | None:
    """Split a path that a person typed. None if it leads outside of the folder."""
    wanted = PurePosixPath(path.strip())
    if not wanted.is_absolute():
        return list(wanted.parts)
    return list(wanted.relative_to(folder).parts) if wanted.is_relative_to(folder) else None


def _open_folder(folder: str, parts: list[str]) -> int:
    """Open the last folder of the path, each part relative to the previous one. The session's folder itself can contain
    links."""
    try:
        where = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as fault:
        raise NotHanded(_why(fault)) from None
    for part in parts:
        try:
            below = os.open(part, _FOLDER, dir_fd=where)
        except OSError as fault:
            raise NotHanded(_why(fault)) from None
        finally:
            os.close(where)
        where = below
    return where


def _check(about: os.stat_result) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise NotHanded(t("That is not a regular file."))
    if about.st_nlink > 1:
        raise NotHanded(t("That file has other names elsewhere (a hard link), so it is not sent."))


def _content(opened: BinaryIO) -> bytes:
    content = opened.read(MOST_OUT + 1)
    if len(content) > MOST_OUT:
        raise NotHanded(too_large())
    if not content:
        raise NotHanded(t("That file is empty."))
    if content.startswith(_SECRET_BEGINS):
        raise NotHanded(t("That is a database or a key store and is not sent to a chat."))
    wide = content.startswith(_WIDE)
    text = "" if b"\0" in content[:LOOK] and not wide else content.decode("utf-16" if wide else "utf-8", "ignore")
    if redact(text) != text:
        raise NotHanded(
            t("It contains what looks like a secret (a key, a token, a password) and is not sent to a chat.")
        )
    return content


def _why(fault: OSError) -> str:
    if isinstance(fault, FileNotFoundError):
        return t("There is no such file in the session's folder.")
    if fault.errno in (errno.ELOOP, errno.ENOTDIR):  # the error of O_NOFOLLOW for a link
        return t("A link is in the path: only files inside the session's folder can be sent.")
    return t("It cannot be read: {fault}.", fault=escape_controls(str(fault.strerror), keep_lines=False))
