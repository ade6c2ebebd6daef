"""The part of docs/detection.md that says when a person is asked: the rows of the verdict's table, as they are decided.

`tools/gen_verdict.py` puts it into the page; a test compares them.
"""

from __future__ import annotations

from atlasbridge.core.detection.signals import Patience
from atlasbridge.core.detection.verdict import PATIENCE, TABLE, Row, Situation, Who
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import Finding

BEGIN, END = "<!-- verdict: python tools/gen_verdict.py -->", "<!-- /verdict -->"
_HEAD = """\
## When a person is asked

One table decides, from top to bottom: the first row that fits. *Who* is what the operating system says of the program
that draws ("own word": a dialog of the tool's own stands there, whatever its process does), *seen* what the recogniser
found. `< 0.5 s`: the row holds only while the screen has been still for less; `≥ 0.5 s`: only from then on.

| | who | seen | still for | asked | why |
|---|---|---|---|---|---|"""


def render_verdict() -> str:
    rows = [_row(number, row) for number, row in enumerate(TABLE, 1)]
    return "\n".join([BEGIN, _HEAD, *rows, END])


def put_into(page: str) -> str:
    """The page with the section made anew."""
    before, begun, rest = page.partition(BEGIN)
    _, ended, behind = rest.partition(END)
    if not begun or not ended:
        raise ValueError(f"the page has no section between {BEGIN} and {END}")
    return before + render_verdict() + behind


def _row(number: int, row: Row) -> str:
    who = ", ".join(one.value for one in Who if one in row.who)
    return f"| {number} | {who} | {row.seen} | {_still(row)} | {'yes' if row.raises else 'no'} | {row.why} |"


def _still(row: Row) -> str:
    sign, name = ("<", row.until_s) if row.until_s else ("≥", row.after_s)
    return f"{sign} {_seconds(name)}" if name else "any"


def _seconds(name: str) -> str:
    """As it is set at first, for a line discipline and for an event loop with a timer of five seconds."""
    from atlasbridge.core.detection.events import ProbeAnswer, ProbeState
    from atlasbridge.core.detection.signals import Moment

    found, moment = Finding("", PromptType.TYPE_UNKNOWN, 0.5, "", ""), Moment(0.0, 0.0, None)
    probes = (ProbeAnswer(ProbeState.READING, canonical=True), ProbeAnswer(ProbeState.POLLING, period_s=5.0))
    values = [PATIENCE[name](Situation(found, probe, moment, Dialect(""), Patience())) for probe in probes]
    if name == "timer fired":
        return f"its period + {values[0]:g} s"
    return " or ".join(f"{value:g} s" for value in dict.fromkeys(values))
