"""A change of the product comes with a line in CHANGELOG.md: said before the commit and before a merge.

`check_changelog.py` looks at what is about to be committed, `check_changelog.py BASE` at everything since BASE.  What
nobody notices says so: with the line `Changelog: none` in a commit's message, or CHANGELOG=none in the environment
where there is no message yet.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

PRODUCT = re.compile(r"src/(?:atlasbridge|ptypool)/.*(?<!/__init__)\.(?:py|toml|js|css|html|sql)$")
PAGE = "CHANGELOG.md"
NOBODY_NOTICES = re.compile(r"^Changelog: none\b", re.MULTILINE)


def is_missing(changed: list[str], said: str) -> bool:
    """Whether these files want a line that is not there; `said`: the messages, or what the environment says."""
    return PAGE not in changed and not NOBODY_NOTICES.search(said) and any(map(PRODUCT.match, changed))


def git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout


def main(base: str = "") -> int:
    if base:
        changed, said = git("diff", "--name-only", f"{base}...HEAD"), git("log", "--format=%B", f"{base}..HEAD")
    else:
        changed, said = git("diff", "--cached", "--name-only"), f"Changelog: {os.environ.get('CHANGELOG', '')}"
    if not is_missing(changed.splitlines(), said):
        return 0
    print(
        f"The product changed and {PAGE} did not: add a line for who uses it, or say that nobody notices:",
        file=sys.stderr,
    )
    print("'Changelog: none' in a commit's message (before a commit: CHANGELOG=none git commit ...)", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
