"""Where a question comes from, for its card: a CI job, a script, an MCP client, an editor."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from atlasbridge.core.prompt.redact import redact
from atlasbridge.core.system import own_parent
from atlasbridge.core.values import frozen

# the variables by which CI services name a job
_JOBS = (
    ("GITHUB_JOB", "GITHUB_WORKFLOW"),
    ("CI_JOB_NAME", "CI_PROJECT_PATH"),
    ("BUILDKITE_LABEL", "BUILDKITE_PIPELINE_SLUG"),
    ("CIRCLE_JOB", "CIRCLE_PROJECT_REPONAME"),
    ("JOB_NAME", "BUILD_NUMBER"),
)
_SHELLS = ("sh", "bash", "zsh", "fish", "dash", "ksh")
_INTERPRETERS = (*_SHELLS, "python", "perl", "ruby", "node")
_TEXT_FOLLOWS = "ceEmpr"  # options of the other interpreters that are followed by code or the name of a module
_FILE_NAME = re.compile(r"[\w.+@-]{1,80}")


@frozen
class Origin:
    """`tool` is the integration ("ask", "mcp", "acp"), `label` names the caller, `asker` is its process if known."""

    tool: str
    label: str
    command: tuple[str, ...]
    folder: str
    asker: int = 0


def origin_of(tool: str, label: str, command: tuple[str, ...], environ: Mapping[str, str]) -> Origin:
    return Origin(tool, label or _job(environ) or _script(), command, os.getcwd())


def _job(environ: Mapping[str, str]) -> str:
    for job, pipeline in _JOBS:
        if environ.get(job):
            return f"CI job {environ[job]}" + (f" of {environ[pipeline]}" if environ.get(pipeline) else "")
    return "a CI job" if environ.get("CI") else ""


def _script() -> str:
    """The script or program that called us; "" if the system does not tell."""
    try:
        words = Path(f"/proc/{own_parent()}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return name_of_caller([os.fsdecode(word) for word in words if word])


def name_of_caller(words: list[str]) -> str:
    """The name of the running file only: the rest of a command line can contain code, arguments and variables with
    secrets."""
    if not words:
        return ""
    program = os.path.basename(words[0]).lstrip("-")
    if not program.startswith(_INTERPRETERS):
        return redact(program)
    shell = program in _SHELLS
    rest = iter(words[1:])
    for word in rest:
        option = word.partition("=")[0]
        if not word.startswith("-"):
            folder, name = os.path.split(word)
            return redact(name) if _FILE_NAME.fullmatch(name) and os.path.basename(folder) != "fd" else ""
        if not word.startswith("--") and any(letter in option for letter in ("c" if shell else _TEXT_FOLLOWS)):
            break  # code follows, which has no name
        if shell and option[-1] in "oO":
            next(rest, "")
    return "" if program in _SHELLS else program
