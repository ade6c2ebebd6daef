"""Where a question comes from, for the card: a CI job, a script, an MCP client, an editor."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

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


@frozen
class Origin:
    """`tool` is the door ("ask", "mcp", "acp"), `label` whoever stands before it, `asker` its process where known."""

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
    """The script or program that called us; "" where the system does not tell."""
    try:
        words = Path(f"/proc/{own_parent()}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    names = [os.path.basename(os.fsdecode(word)) for word in words if word and not word.startswith(b"-")]
    if len(names) > 1 and names[0].startswith(_INTERPRETERS):
        return names[1]
    return "" if not names or names[0] in _SHELLS else names[0]
