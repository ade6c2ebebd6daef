"""What the edges give to a session: made by the composition root, carried through the fork, used once the tool runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from atlasbridge.core.home import Home
from atlasbridge.core.session.plan import Plan
from atlasbridge.core.session.settings import SessionSettings
from atlasbridge.core.tty import Pty, Size
from atlasbridge.core.values import frozen

if TYPE_CHECKING:
    from atlasbridge.core.host.opened import DetectorLike
    from atlasbridge.core.host.typing.typist import Encode
    from atlasbridge.core.ports import WaitingProbe


@frozen
class HostParts:
    """What the edges give to a session; made by the composition root, used once the tool runs."""

    spawn: Callable[[Plan, Size, list[Any] | None], Pty]
    judge: Callable[[Plan, Pty, Size], tuple[DetectorLike, WaitingProbe]]
    encode: Encode
    start_hub: Callable[[], None]
    hub_path: str


class Prepared(NamedTuple):
    """All that a host is made of, besides its plan."""

    home: Home
    parts: HostParts
    settings: SessionSettings
    size: Size
    attributes: list[Any] | None  # the person's own line settings
