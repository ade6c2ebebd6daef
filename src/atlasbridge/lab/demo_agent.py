"""A sample agent for `atlasbridge demo`: it pretends to prepare a release, and asks typical questions. It changes
nothing.

A command, an edit with its diff, a question with choices, free text, a secret, and a command that should be refused.
"""

from __future__ import annotations

import getpass
import os
import signal
import sys
import threading
import time

PAUSE_S = 0.6
BOLD, DIM, RED, GREEN, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[0m"

DIFF = f"""  {BOLD}src/version.py{PLAIN}
    1   {DIM}"\""The version."\""{PLAIN}
    2 {RED}- VERSION = "1.4.2"{PLAIN}
    2 {GREEN}+ VERSION = "1.5.0"{PLAIN}
"""


def work(what: str) -> None:
    for dots in ("", ".", "..", "..."):
        sys.stdout.write(f"\r{DIM}{what}{dots}{PLAIN}")
        sys.stdout.flush()
        time.sleep(PAUSE_S / 4)
    sys.stdout.write("\r\x1b[K")


def agreed(question: str) -> bool:
    return input(question).strip().lower() in ("y", "yes")


def main() -> int:
    print(f"{BOLD}sample agent{PLAIN}: I will prepare a release.\n")
    work("reading the project")
    run_tests()
    version = choose_version()
    edit_version(version)
    note = input("Enter a release note: ").strip()
    secret = getpass.getpass("Password for the package index: ")
    kept = clean_up()
    work("packing")
    print(f"Done: {version}, note {note!r},")
    print(f"a password of {len(secret)} characters\nthat no one has seen,\n{kept}.")
    return 0


def run_tests() -> None:
    print(f"I want to run a command:\n\n  {BOLD}python -m pytest --quiet tests/{PLAIN}\n")
    if agreed("Run it? (y/n) "):
        work("testing")
        print("212 passed.\n")
    else:
        print("Then I skip the tests.\n")


def choose_version() -> str:
    print(
        "Which version do you want?\n  1) 1.4.3, just bug fixes\n  2) 1.5.0, new features\n  3) 2.0.0, breaking changes"
    )
    return {"1": "1.4.3", "2": "1.5.0", "3": "2.0.0"}.get(input("Enter choice [1-3]: ").strip(), "no version")


def edit_version(version: str) -> None:
    work("writing")
    print("\n" + DIFF.replace("1.5.0", version))
    print("The file is changed.\n" if agreed("Make this edit? (y/n) ") else "The file stays as it is.\n")


def clean_up() -> str:
    print(f"\nBefore I pack, I want to make room:\n\n  {BOLD}rm -rf build/ ~/Documents{PLAIN}\n")
    if agreed("Run it? (y/n) "):
        print(f"{DIM}(You approved it. A real agent would have deleted them; this one deletes nothing.){PLAIN}\n")
        return "and your documents would be gone"
    print("Then I do not.\n")
    return "and your documents are still there"


def end_at_ctrl_c() -> None:
    """A thread waits for it, because Python's own handler misses one that comes just before `input` begins to read."""
    signal.sigwait({signal.SIGINT})
    print("\nStopped.", flush=True)
    os._exit(130)


def end_with_the_demo(reader: int, writer: int) -> None:
    """A session goes on when its terminal disappears; this one must not. The demo writes a word if its person has
    detached it."""
    os.close(writer)
    if not os.read(reader, 1):
        os._exit(129)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # it can be ignored, as in a job in the background
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    threading.Thread(target=end_at_ctrl_c, daemon=True).start()
    threading.Thread(target=end_with_the_demo, args=map(int, sys.argv[1:]), daemon=True).start()
    try:
        sys.exit(main())
    except EOFError:
        print("\nStopped.")
        sys.exit(130)
