"""Grants from a chat's card: the offer with its buttons, and the result after a button was pressed.

Each channel decides how a button carries its value and how a message is edited.
"""

from __future__ import annotations

from dataclasses import dataclass

from atlasbridge.channels.language import hub_says, t
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import short_id
from atlasbridge.core.operations import Caller, Granted, Refused
from atlasbridge.core.policy.rule import SPANS, find_span
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import PromptRecord

LEAVE, REVOKE = "no", "r"
LEFT = "Nothing was granted."
LIMITS = "In this session, or in the folder if you choose it; for 12 hours at most. Rules that deny or ask still apply."


@dataclass(frozen=True, slots=True)
class GrantWords:
    """A message with its buttons (label and value), and a short text for the person who pressed. `beside`: post it as a
    new message."""

    text: str
    toast: str
    buttons: tuple[tuple[str, str], ...] = ()
    beside: bool = False


async def press(hub_api: HubApi, record: PromptRecord, value: str, caller: Caller) -> GrantWords | str:
    """Handle a button: "" offers a grant, other values decide about it. Returns a plain text if nothing could be
    done."""
    if value == LEAVE:
        return GrantWords(t(LEFT), t(LEFT))
    if value.startswith(REVOKE) and len(value) > 1:
        ended = await hub_api.by(caller).revoke_grant(value[1:])
        over = isinstance(ended, Refused)
        said = t("That permission has already ended.") if over else t("Revoked. AtlasBridge asks you again.")
        return GrantWords(said, said)
    span = find_span(value)
    if value and span is None:
        return t("This button does not belong to AtlasBridge.")
    hub = hub_api.by(caller)
    if span is None:
        made = await hub.grant(record.prompt_id, preview=True)
    else:
        made = await hub.grant(record.prompt_id, span.for_s, span.times, span.folder)
    if isinstance(made, Refused):
        return escape_controls(hub_says(made.message), keep_lines=False)
    return _offer(made) if span is None else _given(made)


def _offer(made: Granted) -> GrantWords:
    allowed = t("AtlasBridge would allow this without asking: {shape}.", shape=made.shape)
    lines = [f"⏱ {allowed}", *examples(made), t(LIMITS)]
    buttons = (*((hub_says(span.label), span.key) for span in SPANS), (f"✖ {t('No, ask me')}", LEAVE))
    toast = t("Read what it would allow, then choose.")
    return GrantWords(escape_controls("\n".join(lines)), toast, buttons, beside=True)


def _given(made: Granted) -> GrantWords:
    granted = t("Granted: {words}.", words=made.words)
    revoke = (f"✖ {t('Revoke')}", REVOKE + short_id(made.grant_id))
    return GrantWords(escape_controls("\n".join([f"⏱ {granted}", *examples(made)])), granted, (revoke,))


def examples(made: Granted) -> list[str]:
    """Examples of what the grant would allow, and of what not with the reason. Older hubs send no reasons."""
    reasons = made.why_not or ("",) * len(made.would_not)
    refused = zip(made.would_not, reasons, strict=False)
    allowed = [f"✅ {text}" for text in made.would]
    return allowed + ["\n   ".join(filter(None, (f"❌ {text}", why))) for text, why in refused]
