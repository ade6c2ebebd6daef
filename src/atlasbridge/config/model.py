"""Every setting of `config.toml` with its type, its limits, its default and one line of explanation.

The tables of channels are checked by the channels' own models (see `load.py`); here they are only named.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from atlasbridge.core.clock import parse_duration


def _duration(unit_s: float) -> BeforeValidator:
    """Accept a text such as "30m" as a duration, whatever the setting's unit is. A bare number is in that unit."""

    def read(value: Any) -> Any:
        seconds = parse_duration(value, bare_s=unit_s) if isinstance(value, str) else None
        return value if seconds is None else round(seconds / unit_s, 12)

    return BeforeValidator(read)


SPELT_SECONDS = _duration(1.0)
Seconds = Annotated[float, SPELT_SECONDS, Field(ge=0, allow_inf_nan=False)]
PositiveSeconds = Annotated[float, SPELT_SECONDS, Field(gt=0, allow_inf_nan=False)]
PositiveHours = Annotated[float, _duration(3600.0), Field(gt=0, allow_inf_nan=False)]
PositiveDays = Annotated[float, _duration(86_400.0), Field(gt=0, allow_inf_nan=False)]
Milliseconds = Annotated[int, _duration(0.001)]
Count = Annotated[int, Field(ge=0)]


def setting(default: Any, about: str) -> Any:
    """A setting with a default; `about` explains it in the reference and in `config show`."""
    return Field(default=default, description=about)


class Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SafeDefaults(Table):
    """What a timer types if no one answers. It never answers a question with yes."""

    yes_no: Literal["n", "none"] = setting("n", "`n` types no; `none` types nothing. `y` is refused.")
    confirm_enter: Literal["enter", "none"] = setting(
        "enter", "`enter` presses Enter if the prompt is only `Press Enter to continue`; `none` types nothing."
    )
    multiple_choice: Literal["refuse", "none"] = setting(
        "refuse", "`refuse` takes the choice that refuses, if the menu has one; `none` types nothing."
    )
    free_text: Literal["empty", "none"] = setting("none", "A timer never answers free text; `empty` means the same.")


class Prompts(Table):
    timeout_seconds: PositiveSeconds = setting(600, "How long a prompt waits for an answer.")
    idle_timeout_seconds: PositiveSeconds = setting(
        86_400, 'The same for an idle input box ("what next?"), which asks nothing.'
    )
    free_text_enabled: bool = setting(
        True, "`false`: a free-text prompt is not sent to channels that leave this machine."
    )
    notify_idle: bool = setting(True, "Whether to notify people when a tool waits for its next instruction.")
    reminder_seconds: Seconds = setting(300, "When to send a reminder; 0: never.")
    max_reminders: Count = setting(1, "Most reminders for one prompt.")
    muted_tools: list[str] = setting([], "Tools whose prompts notify no channel.")
    replies_per_minute: Annotated[int, Field(ge=1)] = setting(
        10, "Most replies a minute for one session, from channels that leave this machine."
    )
    safe_default: SafeDefaults = setting(SafeDefaults(), "What a timer types, by type of prompt.")
    strict_excerpt: bool = setting(
        False, '`true`: every channel shows at most 200 characters of a question (`show = "excerpt"`).'
    )
    timer_signal: Literal["bell", "osc9", "title", "none"] = setting(
        "bell", "The signal to an attached terminal before and after a timer answers."
    )


class Detection(Table):
    settle_ms: Annotated[Milliseconds, Field(ge=5, le=5000)] = setting(
        50, "How long the screen must be unchanged before it is judged."
    )
    detection_threshold: Annotated[float, Field(gt=0, le=0.99)] = setting(
        0.65, "Lowest score of a pattern that raises a prompt while no process reads the terminal."
    )
    stuck_timeout_seconds: PositiveSeconds = setting(
        2.0, "Silence after which the tool is assumed to wait, if the system cannot tell."
    )
    stuck_poll_interval_seconds: PositiveSeconds = setting(0.5, "How often a silent tool is checked.")
    buffer_size_bytes: Annotated[int, Field(ge=4096, le=16_777_216)] = setting(
        262_144, "Output that is kept until the screen is judged; more is skipped."
    )


class Session(Table):
    detach_key: str = setting(
        "^] d", "A prefix key and a letter that detach; pressed twice, the prefix reaches the tool."
    )
    effect_timeout_seconds: PositiveSeconds = setting(
        5.0, "How long a prompt may stay on the screen after its answer was typed."
    )
    inject_settle_ms: Annotated[Milliseconds, Field(ge=0, le=10_000)] = setting(
        100, "Pause after typing, before keys of the keyboard pass again."
    )
    injection_timeout_seconds: PositiveSeconds = setting(5.0, "How long typing waits for its turn.")
    step_timeout_seconds: PositiveSeconds = setting(
        2.0, "How long one step of an answer may take to appear on the screen."
    )
    task_timeout_seconds: PositiveSeconds = setting(30.0, "After how long a stuck task of a session is cancelled.")
    max_task_restarts: Count = setting(3, "How often a task is restarted before the session ends.")
    task_restart_delay_seconds: Seconds = setting(1.0, "Pause before a task is restarted.")
    kill_grace_seconds: Seconds = setting(3.0, "Time between SIGTERM and SIGKILL.")
    zygote: bool = setting(True, "Keep a fork server that starts further sessions faster (Linux).")


class Hub(Table):
    log_level: Literal["debug", "info", "warning", "error"] = setting("info", "What hub.log contains.")
    log_max_bytes: Annotated[int, Field(ge=10_000)] = setting(5_000_000, "Size at which hub.log rotates.")
    log_backups: Count = setting(3, "How many rotated logs are kept.")
    channel_timeout_seconds: PositiveSeconds = setting(10.0, "How long one call of a channel may take.")
    retry_first_seconds: PositiveSeconds = setting(1.0, "First pause before a failed call of a channel is retried.")
    retry_last_seconds: PositiveSeconds = setting(60.0, "Longest such pause.")
    type_timeout_seconds: PositiveSeconds = setting(30.0, "How long a reply waits to be typed.")
    host_lost_seconds: PositiveSeconds = setting(60.0, "How long to wait for a silent session.")
    graceful_timeout_seconds: Seconds = setting(5.0, "How long channels may take to finish when the hub stops.")
    socket: str = setting(
        "", "Where the hub listens, for sessions of another user; empty: `hub.sock` in the home folder."
    )
    transport: Literal["auto", "loopback"] = setting(
        "auto",
        "How commands and sessions reach the hub: by its Unix socket where the system has those, or by a "
        "port of this machine and a key that is in `hub.tcp` in the home folder.",
    )
    users: list[str] = setting([], "Other users whose sessions can ask here. They can look and ask, but not decide.")
    audit_heads_to: list[str] = setting([], "Channels that get the audit log's head once a day, such as `telegram`.")
    members: list[str] = setting(
        [], "Members of `users` who can decide like the hub's own user, from a terminal outside of sessions."
    )


class Retention(Table):
    prompts_days: PositiveDays = setting(90, "How long answered prompts are kept.")
    sessions_days: PositiveDays = setting(90, "How long ended sessions are kept.")
    inbox_days: PositiveDays = setting(14, "How long messages that channels received are kept.")
    logs_days: PositiveDays = setting(14, "How long logs of ended sessions are kept.")
    session_max_age_hours: PositiveHours = setting(
        168, "How long an ended session is listed by `ps --all` and `status --all`."
    )
    cleanup_every_seconds: PositiveSeconds = setting(3600, "How often old rows and files are removed.")
    keep_raw: bool = setting(False, "Whether the raw bytes of a prompt are kept in the store.")


class Rules(Table):
    file: str = setting("", "The rule file; `policy.toml` in the home folder if empty.")
    tell: Literal["digest", "at_once", "never"] = setting(
        "digest", "How channels report what rules and grants decided."
    )
    digest_hours: PositiveHours = setting(24, "How often they report it, with `digest`.")


class Launcher(Table):
    """A session that can be started from the web page or a chat."""

    name: str = Field(min_length=1, max_length=40, description="Its name in lists.")
    command: list[str] = Field(min_length=1, description="The command line, word by word.")
    cwd: str = setting("~", "The folder in which it starts.")
    folders: list[str] = setting([], "Other folders that a person can choose, each with all folders below it.")
    arguments: bool = setting(False, "Whether a person can add arguments to the command line.")


class PersonEntry(Table):
    """A person with one name for all channels. The channels' own lists say who is allowed to answer."""

    name: str = Field(min_length=1, max_length=40, description="The person's name.")
    identities: list[str] = setting(
        [], 'Their identities in channels: "telegram:1001", "slack:T1/U2", "web:NAME", "cli:local".'
    )
    quiet: list[str] = setting([], 'Hours without a sound, such as "22:00-07:00".')
    zone: str = setting("", 'Their time zone, such as "Europe/Berlin"; empty: that of this machine.')
    language: Literal["", "en", "de", "es", "ja"] = setting(
        "", "The language of chats; empty: the language of the chat's service, or English."
    )


class EscalationStepEntry(Table):
    """One step of an escalation policy."""

    after_seconds: Seconds = setting(0, "Time after the question.")
    who: list[str] = setting([], "Names of people; none: everyone.")
    channels: list[str] = setting([], "Channels, or `here` (this machine's) and `away` (the others); none: all.")
    loud: bool = setting(True, "Whether it makes a sound.")


class EscalationEntry(Table):
    """Who is notified of which prompts, when and how loudly. The first matching escalation policy counts."""

    name: str = Field(min_length=1, max_length=40, description="Its name.")
    tool: str = setting("", "The tool, `*` for any letters; empty: every tool.")
    folder: str = setting("", "The session's folder, such as `~/prod/*`; empty: every folder.")
    label: str = setting("", "The session's label; empty: every label.")
    kind: Literal["", "command", "edit", "fetch", "plan", "question", "tool", "trust"] = setting(
        "", "The kind of subject; empty: every kind."
    )
    urgent: bool = setting(False, "Whether it makes a sound in quiet hours, too.")
    steps: list[EscalationStepEntry] = Field(min_length=1, description="The steps until someone answers.")


class Attention(Table):
    presence_seconds: Seconds = setting(
        20, "After keys in a session, delay notifications that leave this machine for this long; 0: never delay."
    )
    presence_longest_seconds: Seconds = setting(60, "The longest delay.")
    digest_seconds: Seconds = setting(30, "Further questions within this time make no sound; 0: all do.")
    notices_per_hour: Count = setting(
        60, "Most questions and reminders with a sound for one person in an hour; 0: no limit."
    )


class AtlasBridgeConfig(Table):
    prompts: Prompts = setting(Prompts(), "How people are asked.")
    detection: Detection = setting(Detection(), "How waiting is noticed.")
    session: Session = setting(Session(), "How a tool is run.")
    hub: Hub = setting(Hub(), "The background process.")
    retention: Retention = setting(Retention(), "What is kept for how long.")
    policy: Rules = setting(Rules(), "Rules that answer for you; see docs/howto/policy.md.")
    launchers: list[Launcher] = setting([], "Sessions that can be started remotely.")
    attention: Attention = setting(Attention(), "How people are told, and how much.")
    people: list[PersonEntry] = setting([], "Names for people, and when they want quiet.")
    escalation: list[EscalationEntry] = setting([], "Who is notified when; without an entry, everyone at once.")
    channels: dict[str, Any] = Field(
        default_factory=dict, description="One table per channel, such as [channels.telegram]; each has `enabled`."
    )
