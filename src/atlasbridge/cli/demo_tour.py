"""Answers the questions of the demo automatically, slowly enough to watch: for `demo --tour`.

It is a separate process, like a person at another terminal.
"""

from __future__ import annotations

import sys
import time

from atlasbridge.cli.printing import hub_client
from atlasbridge.core.errors import AtlasBridgeError

READ_S = 2.5  # how long a question is shown before it is answered
LOOK_S = 0.2
PATIENCE_S = 60.0
ANSWERS = ("y", "2", "y", "what people asked for", "a-sample-password", "n")


def main(session_label: str) -> int:
    answered: set[str] = set()
    for value in ANSWERS:
        prompt_id = _await_question(session_label, answered)
        if not prompt_id:
            return 1
        answered.add(prompt_id)
        time.sleep(READ_S)
        with hub_client() as hub:
            hub.request("reply", prompt_id=prompt_id, value=value, place="the tour")  # a person can have been faster
    return 0


def _await_question(session_label: str, answered: set[str]) -> str:
    give_up_at = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up_at:
        try:
            with hub_client() as hub:
                prompts = hub.ask("prompts")["prompts"]
        except AtlasBridgeError:
            prompts = []
        for prompt in prompts:
            if prompt["label"] == session_label and prompt["prompt_id"] not in answered:
                return str(prompt["prompt_id"])
        time.sleep(LOOK_S)
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
