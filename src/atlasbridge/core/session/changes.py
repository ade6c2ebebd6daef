"""What has changed in a folder since a moment: files, counts and the differences.  Run as a script of its own, with
`python -I -S changes.py FOLDER SECONDS`; prints one JSON object.

A repository is hostile input: its objects are read here, byte by byte and with limits, and no program is started.  Of
its configuration nothing is read, so no filter, hook, pager or monitor that it names can run.  Standard library only.
"""

import hashlib
import json
import os
import re
import stat
import sys
import time
import zlib
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

MOST_ENTRIES = 200_000  # files and folders that are looked at
MOST_SECONDS = 4.0  # of the processor
MOST_FILES = 300  # that are listed
LARGEST_FILE = 1 << 20  # whose lines are compared
LARGEST_OBJECT = 8 << 20
MOST_DIFF = 48 << 10  # characters of one file's differences
ALL_DIFFS = 256 << 10
MOST_PAIRS = 1_000_000  # of lines that are compared with one another; more are shown as replaced
MOST_RULES = 2000
MOST_STARS = 6
MOST_DELTAS = 128
CACHED = 4 << 20
CONTEXT = 3
COARSE_S = 0.02  # a file system's clock may be so far behind
NEVER = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".cache", ".mypy_cache", ".tox"}
HEX = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
MOVE = re.compile(r"(\w{40,64}) (\w{40,64}) .*> (\d+) [+-]\d{4}(?:\t|$)")
TREE, BLOB = 2, 3
KINDS = {b"commit": 1, b"tree": TREE, b"blob": BLOB, b"tag": 4}
FOLDER, SUBMODULE = 0o40000, 0o160000
READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
IS_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
PART_BY_PART = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")

Entry = tuple[int, str]  # mode and object
Rule = tuple[str, "re.Pattern[str]", bool, bool]  # folder, pattern, takes it back, for folders only
Found = tuple[str, Entry | None, bool]  # path, what was there before, whether something is there now


class Broken(Exception):
    """The repository is not one, or is of a kind that is not read here."""


def open_inside(base: str, path: str) -> int:
    """Opens a file below a folder.  No part of its path may be a link, so nothing outside of the folder is opened, also
    where another program moves folders meanwhile."""
    *folders, name = [part for part in path.split("/") if part]
    if not PART_BY_PART:
        place = os.path.join(os.path.realpath(base), *folders, name)
        if os.path.realpath(place) != place:
            raise OSError("a link leads elsewhere")
        return os.open(place, READ)
    above = os.open(base, IS_FOLDER)
    try:
        for part in folders:
            inside = os.open(part, IS_FOLDER | os.O_NOFOLLOW, dir_fd=above)
            os.close(above)
            above = inside
        return os.open(name, READ | os.O_NOFOLLOW, dir_fd=above)
    finally:
        os.close(above)


def read_file(base: str, path: str, most: int, tail: bool = False) -> bytes:
    """At most so many bytes of a plain file below a folder; b"" of anything else.  Never waits, follows no link."""
    try:
        file = open_inside(base, path)
    except (OSError, ValueError):
        return b""
    try:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode):
            return b""
        if tail and about.st_size > most:
            os.lseek(file, about.st_size - most, os.SEEK_SET)
        with os.fdopen(os.dup(file), "rb") as opened:
            return opened.read(most)
    except OSError:
        return b""
    finally:
        os.close(file)


def inflate(data: bytes, most: int) -> bytes:
    decoder = zlib.decompressobj()
    try:
        out = decoder.decompress(data, most + 1)
    except zlib.error as fault:
        raise Broken(str(fault)) from fault
    if len(out) > most:
        raise Broken("an object is too large")
    return out


class Objects:
    """The objects of a repository, loose and in packs."""

    def __init__(self, folder: str, size: int) -> None:
        self.size = size  # bytes of an object's name: 20, or 32 with SHA-256
        self.folder = folder  # what `info/alternates` names is another repository, and is not read
        self.packs: list[Pack] | None = None
        self.cache: dict[str, tuple[int, bytes]] = {}
        self.cached = 0

    def read(self, name: str) -> tuple[int, bytes]:
        """(kind, content)"""
        if name in self.cache:
            return self.cache[name]
        found = self._loose(name) or self._packed(name)
        if found is None:
            raise Broken("an object is missing")
        if len(found[1]) < CACHED // 8:
            if self.cached > CACHED:
                self.cache, self.cached = {}, 0
            self.cache[name] = found
            self.cached += len(found[1])
        return found

    def _loose(self, name: str) -> tuple[int, bytes] | None:
        data = read_file(self.folder, f"{name[:2]}/{name[2:]}", LARGEST_OBJECT)
        if not data:
            return None
        head, _, content = inflate(data, LARGEST_OBJECT).partition(b"\0")
        kind = KINDS.get(head.partition(b" ")[0])
        if kind is None:
            raise Broken("an object has no kind")
        return kind, content

    def _packed(self, name: str) -> tuple[int, bytes] | None:
        if self.packs is None:
            self.packs = self._open_packs()
        wanted = bytes.fromhex(name)
        for pack in self.packs:
            at = pack.find(wanted)
            if at is not None:
                return self._unpack(pack, at)
        return None

    def _open_packs(self) -> list["Pack"]:
        try:
            names = sorted(name for name in os.listdir(os.path.join(self.folder, "pack")) if name.endswith(".idx"))
        except OSError:
            return []
        packs = (Pack.open(self.folder, f"pack/{name}", self.size) for name in names[:200])
        return [pack for pack in packs if pack is not None]

    def _unpack(self, pack: "Pack", at: int) -> tuple[int, bytes]:
        """Down the chain of differences to a whole object, then up again."""
        deltas = []
        for _ in range(MOST_DELTAS):
            kind, length, base, content = pack.entry(at)
            if length > LARGEST_OBJECT:
                raise Broken("an object is too large")
            if kind in (1, TREE, BLOB, 4):
                break
            deltas.append(content)
            if isinstance(base, int):
                at = base
                continue
            kind, content = self.read(base)
            break
        else:
            raise Broken("too many differences")
        for delta in reversed(deltas):
            content = patched(content, delta)
        return kind, content


class Pack:
    def __init__(self, index: int, file: int, fanout: list[int], size: int) -> None:
        self.index, self.file, self.fanout, self.size = index, file, fanout, size
        self.count = fanout[255]

    @classmethod
    def open(cls, folder: str, path: str, size: int) -> "Pack | None":
        try:
            index, file = open_inside(folder, path), open_inside(folder, path[:-4] + ".pack")
        except OSError:
            return None
        if not all(stat.S_ISREG(os.fstat(one).st_mode) for one in (index, file)):
            return None
        head = at_place(index, 8 + 1024, 0)
        if head[:8] != b"\xfftOc\0\0\0\2":
            return None
        fanout = [int.from_bytes(head[8 + 4 * n : 12 + 4 * n], "big") for n in range(256)]
        return cls(index, file, fanout, size)

    def find(self, wanted: bytes) -> int | None:
        """Where the object begins in the pack; None: it is not in it."""
        low, high = self.fanout[wanted[0] - 1] if wanted[0] else 0, self.fanout[wanted[0]]
        if not 0 <= low < high <= self.count or high - low > 1 << 20:
            return None
        names = at_place(self.index, (high - low) * self.size, 1032 + low * self.size)
        at = names.find(wanted)
        while at >= 0 and at % self.size:
            at = names.find(wanted, at + 1)
        if at < 0:
            return None
        number, offsets = low + at // self.size, 1032 + self.count * (self.size + 4)
        offset = int.from_bytes(at_place(self.index, 4, offsets + 4 * number), "big")
        if offset & 0x80000000:
            place = offsets + 4 * self.count + 8 * (offset & 0x7FFFFFFF)
            offset = int.from_bytes(at_place(self.index, 8, place), "big")
        return offset

    def entry(self, at: int) -> tuple[int, int, int | str, bytes]:
        """(kind, length, where its base is or what it is called, content)"""
        head = at_place(self.file, 64, at)
        if len(head) < 4:
            raise Broken("a pack is cut")
        byte, used = head[0], 1
        kind, length, shift = byte >> 4 & 7, byte & 15, 4
        while byte & 128 and used < 16:
            byte = head[used]
            used, length, shift = used + 1, length | (byte & 127) << shift, shift + 7
        base: int | str = 0
        if kind == 6:
            byte = head[used]
            used, back = used + 1, byte & 127
            while byte & 128 and used < 32:
                byte = head[used]
                used, back = used + 1, (back + 1) << 7 | byte & 127
            base = at - back
            if not 0 < at - back < at:
                raise Broken("a difference has no base")
        elif kind == 7:
            base, used = head[used : used + self.size].hex(), used + self.size
        if length > LARGEST_OBJECT:
            return kind, length, base, b""
        return kind, length, base, self._content(at + used, length)

    def _content(self, at: int, length: int) -> bytes:
        decoder, out = zlib.decompressobj(), b""
        while not decoder.eof and len(out) <= length:
            data = at_place(self.file, min(1 << 16, length + 256), at)
            if not data:
                break
            at += len(data)
            try:
                out += decoder.decompress(data, length + 1 - len(out))
            except zlib.error as fault:
                raise Broken(str(fault)) from fault
        if len(out) != length:
            raise Broken("a pack is cut")
        return out


def at_place(file: int, size: int, place: int) -> bytes:
    os.lseek(file, place, os.SEEK_SET)
    return os.read(file, size)


def patched(base: bytes, delta: bytes) -> bytes:
    """The object that a difference makes of its base."""
    at = 0
    sizes: list[int] = []
    for _ in range(2):
        value, shift = 0, 0
        while True:
            if at >= len(delta) or shift > 63:
                raise Broken("a difference is cut")
            byte = delta[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if not byte & 128:
                break
        sizes.append(value)
    if sizes[0] != len(base) or sizes[1] > LARGEST_OBJECT:
        raise Broken("a difference does not fit")
    out = bytearray()
    while at < len(delta):
        byte = delta[at]
        at += 1
        if byte & 128:
            place = size = 0
            for bit in range(7):
                if byte >> bit & 1:
                    if at >= len(delta):
                        raise Broken("a difference is cut")
                    if bit < 4:
                        place |= delta[at] << 8 * bit
                    else:
                        size |= delta[at] << 8 * (bit - 4)
                    at += 1
            size = size or 0x10000
            if place + size > len(base):
                raise Broken("a difference does not fit")
            out += base[place : place + size]
        elif byte:
            out += delta[at : at + byte]
            at += byte
        else:
            raise Broken("a difference is of another kind")
        if len(out) > sizes[1]:
            raise Broken("a difference does not fit")
    return bytes(out)


class Repository:
    """The tree that was checked out at a moment."""

    def __init__(self, root: str, since: float) -> None:
        own, common = _places(root)
        self.root, self.common = root, common
        self.commit = _commit_at(own, common, since)
        self.objects = Objects(os.path.join(common, "objects"), len(self.commit or "0" * 40) // 2)
        self.trees: dict[str, dict[str, Entry]] = {}
        if self.commit:
            kind, content = self.objects.read(self.commit)
            first = content.partition(b"\n")[0].decode("ascii", "replace")
            if kind != 1 or not first.startswith("tree ") or not HEX.fullmatch(first[5:]):
                raise Broken("a commit has no tree")
            self.trees[""] = self._tree(first[5:])
        else:
            self.trees[""] = {}

    def _tree(self, name: str) -> dict[str, Entry]:
        kind, content = self.objects.read(name)
        if kind != TREE:
            raise Broken("a tree is none")
        found: dict[str, Entry] = {}
        at, size = 0, self.objects.size
        while at < len(content):
            blank, end = content.find(b" ", at), content.find(b"\0", at)
            if not at < blank < end or not content[at:blank].isdigit():
                raise Broken("a tree is cut")
            blob = content[end + 1 : end + 1 + size].hex()
            found[os.fsdecode(content[blank + 1 : end])] = int(content[at:blank], 8), blob
            at = end + 1 + size
        return found

    def tree(self, path: str) -> dict[str, Entry]:
        """What the folder held, by name: (mode, object).  {}: it was not there."""
        if path not in self.trees:
            above, _, name = path.rpartition("/")
            mode, found = self.tree(above).get(name, (0, ""))
            self.trees[path] = self._tree(found) if mode == FOLDER else {}
        return self.trees[path]

    def files(self, path: str) -> Iterator[tuple[str, Entry]]:
        """Every file below a folder that was there."""
        for name, (mode, found) in self.tree(path).items():
            inside = f"{path}/{name}" if path else name
            if mode == FOLDER:
                yield from self.files(inside)
            else:
                yield inside, (mode, found)


def _places(root: str) -> tuple[str, str]:
    """(the folder with this checkout's HEAD, the one with the objects).  Both are in the checkout itself, or belong to
    it by their own account: those of a worktree name the checkout, those of a submodule are in the repository above."""
    root = os.path.realpath(root)
    own = os.path.join(root, ".git")
    if stat.S_ISREG(os.lstat(own).st_mode):
        said = _line_of(root, ".git")
        if not said.startswith("gitdir: "):
            raise Broken("there is no repository")
        own = os.path.join(root, said[8:])
    own = os.path.realpath(own)
    common = os.path.realpath(os.path.join(own, _line_of(own, "commondir") or "."))
    is_worktree = os.path.dirname(os.path.dirname(own)) == common and os.path.realpath(
        os.path.join(own, _line_of(own, "gitdir"))
    ) == os.path.join(root, ".git")
    if is_worktree or (common == own and (_is_below(own, root) or _is_module(own, root))):
        return own, common
    raise Broken("the repository is another folder's")


def _line_of(base: str, path: str) -> str:
    return read_file(base, path, 4096).decode("utf-8", "replace").strip()


def _is_below(place: str, folder: str) -> bool:
    return place.startswith(os.path.join(folder, ""))


def _is_module(own: str, root: str) -> bool:
    """Whether the repository above keeps this one as a submodule."""
    above = find_root(os.path.dirname(root))
    if not above:
        return False
    try:
        return any(_is_below(own, os.path.join(place, "modules")) for place in _places(above))
    except Broken:
        return False


def _commit_at(own: str, common: str, since: float) -> str | None:
    """What HEAD was at that moment, by its own log; without one, what it is now.  None: there was no commit yet."""
    lines = read_file(own, "logs/HEAD", 1 << 20, tail=True).decode("utf-8", "replace").split("\n")
    moves = [found for line in lines if (found := MOVE.match(line))]
    if moves:
        before = [move for move in moves if int(move[3]) <= since and not _is_made_since(common, move[2], since)]
        return _known(before[-1][2] if before else moves[0][1])
    head = _line_of(own, "HEAD")
    if not head.startswith("ref: "):
        return _known(head)
    ref = head[5:]
    if not ref.startswith("refs/") or ".." in ref:
        raise Broken("HEAD names no branch")
    for folder in (own, common):
        if said := _line_of(folder, ref):
            return _known(said)
    for line in read_file(common, "packed-refs", 8 << 20).decode("utf-8", "replace").split("\n"):
        if line[41:] == ref or line[65:] == ref:
            return _known(line.partition(" ")[0])
    return None


def _is_made_since(common: str, name: str, since: float) -> bool:
    """Of a commit in the very second: its file says whether it came before or after."""
    try:
        return os.stat(os.path.join(common, "objects", name[:2], name[2:])).st_mtime >= since - COARSE_S
    except OSError:
        return False


def _known(name: str) -> str | None:
    if not HEX.fullmatch(name):
        raise Broken("HEAD is none")
    return name if name.strip("0") else None


def rules_of(text: bytes, folder: str) -> list[Rule]:
    """(pattern, takes it back, for folders only) of each line of a file of ignored names, the last first."""
    found: list[Rule] = []
    for line in text.decode("utf-8", "replace").split("\n")[:MOST_RULES]:
        line = line.rstrip("\r")
        line = line if line.endswith("\\ ") else line.rstrip(" ")
        if not line or line.startswith("#") or len(line) > 200 or line.count("*") > MOST_STARS:
            continue
        back, line = line.startswith("!"), line.removeprefix("!").removeprefix("\\")
        only, line = line.endswith("/"), line.rstrip("/")
        fixed, line = "/" in line, line.removeprefix("/")
        try:
            pattern = re.compile(("" if fixed else "(?:.*/)?") + _translated(line), re.DOTALL)
        except re.error:
            continue
        found.append((folder, pattern, back, only))
    return found[::-1]


def _translated(line: str) -> str:
    out, at = "", 0
    while at < len(line):
        if line.startswith("**/", at):
            out, at = out + "(?:.*/)?", at + 3
        elif line.startswith("/**", at) and at + 3 == len(line):
            out, at = out + "/.*", at + 3
        elif line[at] == "*":
            out, at = out + "[^/]*", at + (2 if line.startswith("**", at) else 1)
        elif line[at] == "?":
            out, at = out + "[^/]", at + 1
        elif line[at] == "[" and (end := line.find("]", at + 2)) > 0:
            inside = line[at + 1 : end].replace("\\", "\\\\")
            out, at = out + "[" + ("^" + inside[1:] if inside[:1] in "!^" else inside) + "]", end + 1
        elif line[at] == "\\" and at + 1 < len(line):
            out, at = out + re.escape(line[at + 1]), at + 2
        else:
            out, at = out + re.escape(line[at]), at + 1
    return out


def is_ignored(path: str, is_folder: bool, rules: list[Rule]) -> bool:
    for folder, pattern, back, only in rules:
        inside = path[len(folder) + 1 :] if folder else path
        if (is_folder or not only) and pattern.fullmatch(inside):
            return not back
    return False


class Look:
    """One walk through the folder: what was written, made or removed since."""

    def __init__(self, root: str, below: str, since: float, repository: Repository | None) -> None:
        self.root, self.below, self.repository = root, below, repository
        self.since = since - COARSE_S
        self.until = time.process_time() + MOST_SECONDS
        self.seen = 0
        self.whole = True
        self.found: list[Found] = []

    def walk(self) -> list[Found]:
        rules: list[Rule] = []
        if self.repository is not None:
            rules = rules_of(read_file(self.repository.common, "info/exclude", 1 << 16), "")
            above = [""] if self.below else []
            parts = self.below.split("/")
            above += ["/".join(parts[:count]) for count in range(1, len(parts))]
            for folder in above:
                rules = rules_of(read_file(self.root, f"{folder}/.gitignore", 1 << 18), folder) + rules
        todo = [(self.below, rules)]
        while todo:
            folder, rules = todo.pop()
            todo += self._folder(folder, rules)
        return sorted(self.found)

    def _folder(self, folder: str, rules: list[Rule]) -> list[tuple[str, list[Rule]]]:
        place = os.path.join(self.root, folder) if folder else self.root
        try:
            entries = list(os.scandir(place))
            changed = os.stat(place, follow_symlinks=False).st_mtime >= self.since
        except OSError:
            return []
        names = {entry.name for entry in entries}
        if folder != self.below and ".git" in names:
            return []  # another repository
        if self.repository is not None and ".gitignore" in names:
            rules = rules_of(read_file(self.root, f"{folder}/.gitignore", 1 << 18), folder) + rules
        if changed:
            self._removed(folder, names)
        return [(inside, rules) for entry in entries if (inside := self._entry(entry, folder, rules))]

    def _entry(self, entry: "os.DirEntry[str]", folder: str, rules: list[Rule]) -> str | None:
        """The folder's path, where one is to be looked into."""
        self.seen += 1
        if self.seen > MOST_ENTRIES or (not self.seen & 1023 and time.process_time() > self.until):
            self.whole = False
        if not self.whole or entry.name == ".git":
            return None
        path = f"{folder}/{entry.name}" if folder else entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                return path if self._is_ours(path, entry.name, folder, True, rules) else None
            about = entry.stat(follow_symlinks=False)
        except OSError:
            return None
        if max(about.st_ctime, about.st_mtime if os.name == "nt" else 0.0) < self.since:
            return None
        plain = stat.S_ISREG(about.st_mode) or stat.S_ISLNK(about.st_mode)
        if plain and self._is_ours(path, entry.name, folder, False, rules):
            self.found.append((path, self._before(folder, entry.name), True))
        return None

    def _is_ours(self, path: str, name: str, folder: str, is_folder: bool, rules: list[Rule]) -> bool:
        if self.repository is None:
            return name not in NEVER
        return not is_ignored(path, is_folder, rules) or name in self.repository.tree(folder)

    def _before(self, folder: str, name: str) -> Entry | None:
        return self.repository.tree(folder).get(name) if self.repository is not None else None

    def _removed(self, folder: str, names: set[str]) -> None:
        if self.repository is None:
            return
        for name, (mode, found) in self.repository.tree(folder).items():
            path = f"{folder}/{name}" if folder else name
            if name in names:
                continue
            if mode == FOLDER:
                self.found += [(inside, before, False) for inside, before in self.repository.files(path)]
            elif mode != SUBMODULE:
                self.found.append((path, (mode, found), False))


def blob_name(content: bytes, size: int) -> str:
    digest = hashlib.sha256() if size == 32 else hashlib.sha1(usedforsecurity=False)
    digest.update(b"blob %d\0" % len(content))
    digest.update(content)
    return digest.hexdigest()


def compare(root: str, found: Found, repository: Repository | None, room: int) -> dict[str, Any] | None:
    """What became of one file; None: it is as it was."""
    path, before, is_there = found
    size = repository.objects.size if repository else 20
    now, large, is_shared = b"", False, False
    if is_there:
        place = os.path.join(root, path)
        try:
            about = os.lstat(place)
            is_link = stat.S_ISLNK(about.st_mode)
            now = os.fsencode(os.readlink(place)) if is_link else read_file(root, path, LARGEST_FILE + 1)
        except OSError:
            return None
        large = about.st_size > LARGEST_FILE
        is_shared = about.st_nlink > 1  # it has other names, which can be outside of the folder
    if before is not None and before[0] in (FOLDER, SUBMODULE):
        before = None
    names = (blob_name(now, size), blob_name(now.replace(b"\r\n", b"\n"), size))
    if before is not None and is_there and not large and before[1] in names:
        return None
    told: dict[str, Any] = {
        "path": shown(path),
        "status": "changed" if before and is_there else "added" if is_there else "removed",
    }
    if repository is None:
        return {**told, "status": "written"}
    if is_shared:
        return {**told, "unknown": True}
    try:
        was = repository.objects.read(before[1])[1] if before is not None else b""
    except Broken:
        return {**told, "unknown": True}
    if large or len(was) > LARGEST_FILE:
        return {**told, "large": True}
    if b"\0" in was[:8000] or b"\0" in now[:8000]:
        return {**told, "binary": True}
    return {**told, **differences(was, now, room)}


def differences(was: bytes, now: bytes, room: int) -> dict[str, Any]:
    old, new = (text.decode("utf-8", "replace").splitlines() for text in (was, now))
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    blocks = [("replace", 0, len(a), 0, len(b))]
    if a and b and len(a) * len(b) <= MOST_PAIRS:
        blocks = [block for block in SequenceMatcher(None, a, b).get_opcodes() if block[0] != "equal"]
    added, removed = sum(block[4] - block[3] for block in blocks), sum(block[2] - block[1] for block in blocks)
    lines: list[str] = []
    used = last = 0
    for at, (_, a1, a2, b1, b2) in enumerate(blocks):
        begin = max(last, a1 + head - CONTEXT)
        gap = [f"@@ {b1 + head + 1} @@"] if begin > last or (at == 0 and begin) else []
        following = blocks[at + 1][1] + head if at + 1 < len(blocks) else len(old)
        last = min(a2 + head + CONTEXT, following)
        part = [*gap, *(f" {line}" for line in old[begin : a1 + head])]
        part += [f"-{line}" for line in a[a1:a2]] + [f"+{line}" for line in b[b1:b2]]
        for line in [*part, *(f" {line}" for line in old[a2 + head : last])]:
            used += len(line) + 1
            if used > min(MOST_DIFF, room):
                return {"added": added, "removed": removed, "diff": "\n".join(lines), "cut": True}
            lines.append(line)
    return {"added": added, "removed": removed, "diff": "\n".join(lines)}


def shown(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "replace")


def find_root(folder: str) -> str:
    place = folder
    while True:
        if os.path.lexists(os.path.join(place, ".git")):
            return place
        above = os.path.dirname(place)
        if above == place:
            return ""
        place = above


def changes(folder: str, since: float) -> dict[str, Any]:
    folder = os.path.realpath(folder)
    if not os.path.isdir(folder):
        return {"error": "The session's folder is not there any more."}
    root, repository, why = find_root(folder), None, ""
    try:
        repository = Repository(root, since) if root else None
    except Broken as fault:
        why = str(fault)
    root = root if repository else folder
    below = os.path.relpath(folder, root).replace(os.sep, "/")
    look = Look(root, "" if below == "." else below, since, repository)
    try:
        found = look.walk()
    except Broken as fault:  # a tree further down cannot be read: then only the names are told
        repository, why = None, str(fault)
        look = Look(folder, "", since, None)
        root, found = folder, look.walk()
    files: list[dict[str, Any]] = []
    room, count, added, removed = ALL_DIFFS, 0, 0, 0
    for item in found:
        if time.process_time() > look.until:
            look.whole = False
            break
        one = compare(root, item, repository, room if count < MOST_FILES else 0)
        if one is None:
            continue
        count += 1
        added, removed = added + one.get("added", 0), removed + one.get("removed", 0)
        if count <= MOST_FILES:
            room -= len(one.get("diff", ""))
            files.append(one)
    told = {"files": files, "count": count, "added": added, "removed": removed, "whole": look.whole}
    commit = (repository.commit or "")[:12] if repository else ""
    return {**told, "repository": repository is not None, "commit": commit, "why": why}


def main(folder: str, since: float) -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (8, 8))
        resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))
    except ImportError:
        pass
    sys.setrecursionlimit(5000)
    print(json.dumps(changes(folder, since)))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
