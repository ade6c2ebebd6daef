"""The script that stands before a tool on PATH, so that typing its name is `atlasbridge run` of it.

It takes its own folder off PATH before anything else: neither AtlasBridge nor the tool ever finds the script again, so
it cannot call itself, and nothing inside a session is wrapped twice.
"""

from __future__ import annotations

import shlex

from atlasbridge.core.own_python import own_python

MARK = "# made by: atlasbridge shim install"
_SCRIPT = """#!/bin/sh
{mark} {tool}
# ATLASBRIDGE_BYPASS=1 runs the tool itself; so does a pipe, and a session that is AtlasBridge's already.
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd -P)
rest=
old_ifs=$IFS
IFS=:
for folder in $PATH; do
    place=$(CDPATH= cd -- "${{folder:-.}}" 2>/dev/null && pwd -P)
    [ "$place" = "$here" ] || rest=${{rest:+$rest:}}$folder
done
IFS=$old_ifs
PATH=$rest
export PATH
if ! command -v {tool} >/dev/null 2>&1; then
    echo "{plain}: only its AtlasBridge shim was found on PATH, not the tool" >&2
    exit 127
fi
if [ -n "$ATLASBRIDGE_BYPASS" ] || [ -n "$IN_ATLASBRIDGE" ] || [ ! -t 0 ] || [ ! -t 1 ] || [ ! -x {python} ]; then
    exec {tool} "$@"
fi
IN_ATLASBRIDGE=1
export IN_ATLASBRIDGE
exec {words} run -- {tool} "$@"
"""


def render_shim(tool: str) -> str:
    words = own_python("atlasbridge")
    return _SCRIPT.format(
        mark=MARK,
        tool=shlex.quote(tool),
        plain=tool,
        python=shlex.quote(words[0]),
        words=" ".join(shlex.quote(word) for word in words),
    )
