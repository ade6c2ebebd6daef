"""The life cycle of a prompt as one table: `(state, event) -> state`. Code, SQL guards, docs and tests all use it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from atlasbridge.core.errors import IllegalTransition
from atlasbridge.core.prompt.model import PromptState as S


class PromptMoved(StrEnum):
    """The events in the life of a prompt."""

    ROUTE = "route"  # sent to at least one channel
    DELIVER = "deliver"  # a channel has shown it to a person
    ACCEPT = "accept"  # a valid reply was claimed
    INJECT = "inject"  # the keys were typed
    RESOLVE = "resolve"  # the prompt left the screen
    EXPIRE = "expire"  # its time is over
    WITHDRAW = "withdraw"  # the tool moved on, or it was answered at the terminal
    CANCEL = "cancel"  # a person chose to leave it alone
    FAIL = "fail"  # it can no longer be answered


E = PromptMoved
OPEN: Final = frozenset({S.CREATED, S.ROUTED, S.AWAITING_REPLY})
FINAL: Final = frozenset({S.RESOLVED, S.WITHDRAWN, S.FAILED})

_ENDINGS: Final = {E.WITHDRAW: S.WITHDRAWN, E.CANCEL: S.CANCELED, E.FAIL: S.FAILED}

TRANSITIONS: Final[dict[tuple[S, E], S]] = {
    (S.CREATED, E.ROUTE): S.ROUTED,
    (S.ROUTED, E.DELIVER): S.AWAITING_REPLY,
    **{(state, E.ACCEPT): S.REPLY_RECEIVED for state in OPEN},
    **{(state, E.EXPIRE): S.EXPIRED for state in OPEN},
    **{(state, event): end for state in OPEN for event, end in _ENDINGS.items()},
    (S.REPLY_RECEIVED, E.INJECT): S.INJECTED,
    (S.REPLY_RECEIVED, E.WITHDRAW): S.WITHDRAWN,  # it was gone when the host compared the screen
    (S.REPLY_RECEIVED, E.FAIL): S.FAILED,
    (S.INJECTED, E.RESOLVE): S.RESOLVED,
    (S.INJECTED, E.FAIL): S.FAILED,  # typed, but the prompt is still there
    (S.EXPIRED, E.INJECT): S.INJECTED,  # the safe default
    (S.EXPIRED, E.WITHDRAW): S.WITHDRAWN,
    (S.EXPIRED, E.FAIL): S.FAILED,
    (S.CANCELED, E.WITHDRAW): S.WITHDRAWN,  # left alone, and now the tool has moved on or asks again
}


def next_state(state: S, event: PromptMoved) -> S:
    """The new state after `event`. An illegal transition raises IllegalTransition and changes nothing."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise IllegalTransition(f"a prompt that is {state.value} cannot {event.value}") from None


def sources(event: PromptMoved) -> tuple[S, ...]:
    """The states from which `event` is legal, for the SQL guard."""
    return tuple(state for state, moved in TRANSITIONS if moved is event)
