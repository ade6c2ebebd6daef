"""A draft of the change that a tool's dialect needs for a version that was never walked, made from a walk through it.

Only a draft: which key answers a dialog that has changed is for a person to find out, with the screen beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

from atlasbridge.adapters.installed import verified_versions
from atlasbridge.lab.canary import Result

_SCREEN_ROWS = 30


def draft_for(tool: str, version: str, results: Sequence[Result]) -> str:
    """Beside the versions that its adapter knows."""
    return draft_change(tool, version, verified_versions(tool.partition("-")[0]), results)


def draft_change(tool: str, version: str, verified: Sequence[str], results: Sequence[Result]) -> str:
    """TOML with comments: what is new in this version as far as the walk could tell."""
    failed = [result for result in results if not result.ok]
    said = "the version that was walked before" if len(verified) == 1 else "the versions that were walked before"
    lines = [f"# {tool} {version}, beside {said}: {', '.join(verified) or 'none'}."]
    if not results:
        return "\n".join([*lines, "# Nothing was walked: the tool did not start.", ""])
    good = len(results) - len(failed)
    lines.append(f"# {good} of {len(results)} dialogs were recognised and answered as before.")
    if not failed:
        versions = ", ".join(f'"{known}"' for known in (*verified, version))
        return "\n".join(
            [
                *lines,
                "# Nothing has changed that AtlasBridge goes by: the version can be added.",
                "",
                f"versions = [{versions}]",
                "",
            ]
        )
    for result in failed:
        lines += ["", *_changed(tool, result)]
    return "\n".join([*lines, ""])


def _changed(tool: str, result: Result) -> list[str]:
    """A dialog that is no longer recognised or answered: what was seen of it, and an entry to begin with."""
    what, _, screen = result.detail.partition("\n")
    rows = [f"#   {row}".rstrip() for row in screen.splitlines()[-_SCREEN_ROWS:]]
    name = "-".join(word for word in "".join(c if c.isalnum() else " " for c in result.dialog).split())
    entry = ("[[menu]]", f'id = "{tool}-{name}"', "needs = ''  # words that stand in this dialog and nowhere else")
    return [
        f"# {result.dialog}: {what}",
        *rows,
        *(f"# {line}" for line in entry),
        '# choose = "digit"  # or "arrows", "hotkey"',
    ]
