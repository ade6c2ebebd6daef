"""A sample agent for `atlasbridge demo`: pretends to work and asks one question of every type."""

from __future__ import annotations

import getpass
import sys
import time

PAUSE_S = 0.6
BOLD, DIM, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


def work(what: str) -> None:
    for dots in ("", ".", "..", "..."):
        sys.stdout.write(f"\r{DIM}{what}{dots}{PLAIN}")
        sys.stdout.flush()
        time.sleep(PAUSE_S / 4)
    sys.stdout.write("\r\x1b[K")


def main() -> int:
    print(f"{BOLD}sample agent{PLAIN}: I shall prepare a release.")
    work("reading the project")
    if input("Run the tests before the release? (y/n) ").strip().lower() not in ("y", "yes"):
        print("I leave the tests out.")
    else:
        work("testing")
        print("All tests pass.")
    input("Press Enter to continue ")
    work("collecting changes")
    print("Which version shall it be?\n  1) patch\n  2) minor\n  3) major")
    version = input("Enter choice [1-3]: ").strip()
    note = input("Enter a release note: ").strip()
    secret = getpass.getpass("Password: ")
    work("packing")
    kind = {"1": "patch", "2": "minor", "3": "major"}.get(version, "no")
    print(f"Done: a {kind} release, note {note!r}, and a password of {len(secret)} characters that nobody has seen.")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (EOFError, KeyboardInterrupt):
        print("\nStopped.")
        sys.exit(130)
