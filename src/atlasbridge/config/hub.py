"""What the configuration means for the hub: its tables in the words of the hub's own settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atlasbridge.config.attention import plan_attention
from atlasbridge.config.load import Configuration
from atlasbridge.core.daemon.settings import HubSettings, Retention
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.hub_connection import wants_loopback
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.routing.channel_worker import WorkerSettings
from atlasbridge.core.routing.policy import PolicySettings

DAY_S = 86_400.0


def hub_settings(config: Configuration) -> HubSettings:
    hub, keep = config.general.hub, config.general.retention
    return HubSettings(
        policy=plan_policy(config),
        worker=WorkerSettings(hub.channel_timeout_seconds, hub.retry_first_seconds, hub.retry_last_seconds),
        rate_limit_per_minute=config.general.prompts.replies_per_minute,
        type_timeout_s=hub.type_timeout_seconds,
        host_lost_s=hub.host_lost_seconds,
        graceful_timeout_s=hub.graceful_timeout_seconds,
        guests=frozenset(user_number(name) for name in hub.users),
        transport=transport_of(config),
        cleanup_every_s=keep.cleanup_every_seconds,
        retention=Retention(
            prompts_s=keep.prompts_days * DAY_S,
            sessions_s=keep.sessions_days * DAY_S,
            inbox_s=keep.inbox_days * DAY_S,
            session_logs_s=keep.logs_days * DAY_S,
            listed_s=keep.session_max_age_hours * 3600,
        ),
    )


def transport_of(config: Configuration) -> str:
    """Other users cannot read the key of a hub at a port, and come to a socket only."""
    hub = config.general.hub
    if wants_loopback(hub.transport) and (hub.users or hub.socket):
        raise ConfigError("hub.users and hub.socket need a Unix socket", "a hub at a port is its own user's alone")
    return hub.transport


def user_number(name: str) -> int:
    """The number of a user of this machine, by name or as a number."""
    import pwd

    try:
        return int(name) if name.isdigit() else pwd.getpwnam(name).pw_uid
    except KeyError:
        raise ConfigError(f"hub.users: there is no user {name!r} here", "use names as in /etc/passwd") from None


def plan_policy(config: Configuration) -> PolicySettings:
    prompts = config.general.prompts
    by_timer = {
        PromptType.TYPE_YES_NO: prompts.safe_default.yes_no,
        PromptType.TYPE_CONFIRM_ENTER: prompts.safe_default.confirm_enter,
        PromptType.TYPE_MULTIPLE_CHOICE: prompts.safe_default.multiple_choice,
        PromptType.TYPE_FREE_TEXT: prompts.safe_default.free_text,
    }
    allowed = {name: allowed_people(name, table) for name, table in config.channels.items()}
    return PolicySettings(
        prompt_ttl_s=prompts.timeout_seconds,
        idle_ttl_s=prompts.idle_timeout_seconds,
        free_text_enabled=prompts.free_text_enabled,
        notify_idle=prompts.notify_idle,
        reminder_s=prompts.reminder_seconds,
        max_reminders=prompts.max_reminders,
        muted_tools=frozenset(prompts.muted_tools),
        timer_types=frozenset(kind for kind, value in by_timer.items() if value != "none"),
        timer_signal=prompts.timer_signal,
        allowed=allowed,
        attention=plan_attention(config, allowed),
    )


BUILT_IN_CHANNELS = frozenset(("telegram", "slack", "matrix", "ntfy", "tell", "desktop", "local"))  # they name people
OPERATOR = "operator"  # the one person that a channel written from the document serves: it tells no names


def allowed_people(channel: str, table: Mapping[str, Any]) -> frozenset[str] | None:
    """Who may answer there; None: the channel knows its people itself, as the page does by its login."""
    if channel in ("web", "memory"):
        return None
    team = f"{table['team_id']}/" if "team_id" in table else ""
    nobody_named = () if channel in BUILT_IN_CHANNELS else (OPERATOR,)
    return frozenset(f"{channel}:{team}{person}" for person in table.get("allowed_users", nobody_named))
