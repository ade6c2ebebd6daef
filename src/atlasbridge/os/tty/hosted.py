"""A session without its own console (`run --detach` on Windows): a separate process hosts it. The process reports its
start in one line and then runs until its program ends.
"""

from __future__ import annotations

import json
import os
from typing import Any

from atlasbridge.core.process import first_line, own_environ, own_python, start_alone
from atlasbridge.core.session.settings import HOSTED, Plan
from atlasbridge.core.tty import Ending

_PATIENCE_S = 60.0


def start_hosted(plan: Plan) -> Ending:
    """Ending 0 means that the session runs."""
    environ = own_environ(os.environ, **{HOSTED: plan.session_id})
    process = start_alone(own_python("atlasbridge", "run", *hosted_words(plan)), environ, answer=True)
    line = first_line(process, _PATIENCE_S)
    said = json.loads(line) if line else {}
    if said.get("started"):
        process.returncode = 0  # it continues to run, and nobody waits for its exit status
        return Ending(0)
    process.kill()  # it has ended, or would start after we stopped waiting
    process.wait()
    if "status" not in said:
        return Ending(1, "the session did not start", f"its log: sessions/{plan.session_id[:8]}.log")
    return Ending(int(said["status"]), str(said["text"]), str(said["hint"]))


def hosted_words(plan: Plan) -> tuple[str, ...]:
    """The arguments of `run`, without `--detach`."""
    words = ["--backend", plan.backend]
    words += ["--name", plan.label] if plan.label else []
    words += [word for name in plan.channels or () for word in ("--channel", name)]
    words += ["--channel", "none"] if plan.channels == () else []
    words += ["--ttl", repr(plan.ttl_s)] if plan.ttl_s is not None else []
    words += ["--dialect", plan.dialect] if plan.dialect else []
    words += [] if plan.hub else ["--no-hub"]
    return (*words, "--", *plan.command)


def tell_starter(refused: Ending | None) -> None:
    """Write the one line for the process that started this one."""
    said: dict[str, Any] = {"started": True}
    if refused is not None:
        said = {"status": refused.status, "text": refused.text, "hint": refused.hint}
    try:
        os.write(1, json.dumps(said).encode() + b"\n")
    except OSError:
        pass  # the starter did not wait
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.close(nowhere)
