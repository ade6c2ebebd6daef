#!/usr/bin/env python3
"""Makes a program that was compiled with Bun for another kind of machine run on this one.

Such a program is a runtime with a section of JavaScript in it.  The section goes into a runtime for this machine, and
native libraries inside it are replaced by those for this machine.  Only for the lab: a tool without a program for this
machine in its registry can be walked all the same.

    tools/bun_here.py PROGRAM BUN OUT [NAME=LIBRARY ...]
"""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
from pathlib import Path

END = b"\n---- Bun! ----\n"
OFFSETS = struct.Struct("<QIIIIII")  # bytes, modules (place, length), entry, arguments (place, length), flags
MODULE = 52  # bytes of a row in the table of modules: name (place, length), contents (place, length), ...
PAGE = 4096


def section(program: Path) -> tuple[int, int]:
    """Place and size of `.bun` in an ELF file of 64 bits."""
    data = program.read_bytes()
    (table,), (size, count, names) = struct.unpack_from("<Q", data, 0x28), struct.unpack_from("<HHH", data, 0x3A)
    rows = [struct.unpack_from("<IIQQQQ", data, table + size * at) for at in range(count)]
    for name, _, _, _, place, length in rows:
        start = rows[names][4] + name
        if data[start : data.index(b"\0", start)] == b".bun":
            return place, length
    raise SystemExit(f"{program}: not a program that was compiled with Bun")


def payload(program: Path) -> bytes:
    place, _ = section(program)
    with program.open("rb") as file:
        file.seek(place)
        (length,) = struct.unpack("<Q", file.read(8))
        found = file.read(length)
    if not found.endswith(END):
        raise SystemExit(f"{program}: its JavaScript is not where it is looked for")
    return found


def replaced(data: bytes, name: str, library: bytes) -> bytes:
    """The payload with other contents for the module whose name contains this."""
    count, place, length, entry, words, words_length, flags = OFFSETS.unpack(data[-len(END) - OFFSETS.size : -len(END)])
    table = bytearray(data[place : place + length])
    for row in range(0, length, MODULE):
        start, size = struct.unpack_from("<II", table, row)
        if name in data[start : start + size].decode():
            blanks = bytes(-place % PAGE)
            struct.pack_into("<II", table, row + 8, place + len(blanks), len(library))
            more = len(blanks) + len(library)
            rest = data[place + length : -len(END) - OFFSETS.size]
            where = OFFSETS.pack(count + more, place + more, length, entry, words + more, words_length, flags)
            return data[:place] + blanks + library + bytes(table) + rest + where + END
    raise SystemExit(f"no module is called {name}")


def runtime(bun: Path, size: int, folder: Path) -> Path:
    """A program of the runtime's own kind with room for that many bytes."""
    (folder / "room.bin").write_bytes(bytes(size))
    (folder / "main.ts").write_text('import room from "./room.bin" with { type: "file" }; console.log(room)')
    subprocess.run((bun, "build", "--compile", "main.ts", "--outfile", "made"), cwd=folder, check=True)
    return folder / "made"


def main(program: str, bun: str, out: str, *libraries: str) -> None:
    data = payload(Path(program))
    for one in libraries:
        name, _, file = one.partition("=")
        data = replaced(data, name, Path(file).read_bytes())
    data = struct.pack("<Q", len(data)) + data
    with tempfile.TemporaryDirectory() as folder:
        made = runtime(Path(bun).resolve(), len(data), Path(folder))
        place, _ = section(made)
        whole = bytearray(made.read_bytes())
    whole[place : place + len(data)] = data
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    Path(out).write_bytes(whole)
    Path(out).chmod(0o755)


if __name__ == "__main__":
    main(*sys.argv[1:])
