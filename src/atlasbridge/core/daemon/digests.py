"""One message for many questions that came together: which they are, edited as they come and are settled."""

from __future__ import annotations

from collections.abc import Iterable

from atlasbridge.core.daemon.parts import HubParts
from atlasbridge.core.ids import short_id
from atlasbridge.core.policy.ladder import Telling
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import mutable
from atlasbridge.core.visible import visible

MOST_LISTED = 12
LINE_LIMIT = 90


@mutable
class _Digest:
    key: str
    lines: dict[str, str]  # by prompt, in the order in which they came
    settled: int = 0


class Digests:
    def __init__(self, hub: HubParts) -> None:
        self._hub = hub
        self._open: dict[str, _Digest] = {}  # by channel: the newest

    def joined(self, telling: Telling, record: PromptRecord, session: SessionRecord) -> None:
        digest = self._open.get(telling.channel)
        if digest is None or telling.opens:
            digest = self._open[telling.channel] = _Digest(record.prompt_id, {})
        digest.lines[record.prompt_id] = _line(record, session)
        self._show(telling.channel, digest, telling.opens)

    def settled(self, prompt_id: str) -> None:
        for channel, digest in list(self._open.items()):
            if digest.lines.pop(prompt_id, None) is not None:
                digest.settled += 1
                self._show(channel, digest, False)
                if not digest.lines:
                    del self._open[channel]

    def _show(self, channel: str, digest: _Digest, loud: bool) -> None:
        self._hub.router.digest(channel, digest.key, render_digest(digest.lines.values(), digest.settled), loud)


def render_digest(lines: Iterable[str], settled: int) -> str:
    waiting = list(lines)
    if not waiting:
        return f"All {settled} of these are settled." if settled > 1 else "It is settled."
    head = f"{len(waiting)} more question{'s' if len(waiting) > 1 else ''} wait{'' if len(waiting) > 1 else 's'}"
    head += f", {settled} settled:" if settled else ":"
    more = [f"… and {len(waiting) - MOST_LISTED} more"] if len(waiting) > MOST_LISTED else []
    return "\n".join([head, *waiting[:MOST_LISTED], *more])


def _line(record: PromptRecord, session: SessionRecord) -> str:
    name = visible(session.label or session.tool, keep_lines=False)
    if record.prompt.secret:
        return f"• {name}: a secret"
    asked = visible(record.prompt.excerpt, keep_lines=False)
    return f"• {name} ({short_id(record.prompt_id)}): “{asked[:LINE_LIMIT]}{'…' if len(asked) > LINE_LIMIT else ''}”"
