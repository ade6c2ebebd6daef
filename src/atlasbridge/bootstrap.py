"""The composition root: the only file that knows every part. Everything is imported where it is needed, so that a
command imports only what it uses."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from atlasbridge.core.clock import SystemClock
from atlasbridge.core.home import Home
from atlasbridge.core.values import replace

if TYPE_CHECKING:
    import socket

    from atlasbridge.adapters.tool_start import ToolStart
    from atlasbridge.channels.setup_clients import Introduction
    from atlasbridge.config.load import Configuration
    from atlasbridge.core.daemon.service import ChannelPlan, HubPlan
    from atlasbridge.core.detection.detector import Detector
    from atlasbridge.core.detection.verdict import DetectorSettings
    from atlasbridge.core.host.analysis import DetectorLike, HostParts, Prepared
    from atlasbridge.core.ports import Channel, HubApi, WaitingProbe
    from atlasbridge.core.recognition.dialect import Dialect
    from atlasbridge.core.routing.router import ChatPlan
    from atlasbridge.core.session.settings import Plan, SessionSettings
    from atlasbridge.core.tty import Ending, Pty, Size
    from atlasbridge.os.tracing import PromptTracer


CAPTURE = "ATLASBRIDGE_CAPTURE_PROMPTS"


def channel_names() -> list[str]:
    from atlasbridge.channels.registry import ChannelRegistry

    return ChannelRegistry.names()


def load_configuration(home: Home, environ: Mapping[str, str]) -> Configuration:
    return check_configuration(home.config, environ)


def check_configuration(path: Path, environ: Mapping[str, str]) -> Configuration:
    """The same for a file that is not installed yet."""
    from atlasbridge.channels.registry import channel_settings
    from atlasbridge.config.load import load_config

    return load_config(path, environ, channel_settings, channel_names())


def local_language() -> AbstractContextManager[None]:
    """Inside, `say` and the clients of `introduce` write in the language of this machine's locale."""
    from atlasbridge.channels.language import machine_reader, reading

    return reading(machine_reader())


def say(english: str, **values: object) -> str:
    from atlasbridge.channels.language import t

    return t(english, **values)


def how_to_start(channel: str) -> str:
    """What a person must do at the service before they have a token."""
    from atlasbridge.channels import setup_clients

    return setup_clients.how_to_start(channel)


async def try_notification(url: str) -> None:
    """Send one message to an Apprise address, for `setup`."""
    from atlasbridge.channels.tell import try_address

    await try_address(url)


def introduce(channel: str, tokens: dict[str, str], api_url: str, **more: Any) -> Introduction:
    """Return the client for a chat service before a channel is configured, for `setup`."""
    from atlasbridge.channels import setup_clients

    return setup_clients.introduce(channel, tokens, api_url, **more)


def plan_hub(home: Home, environ: Mapping[str, str]) -> HubPlan:
    """The hub's part of the configuration. Raises ConfigError."""
    from atlasbridge.config.hub import hub_settings, plan_rules
    from atlasbridge.core.daemon.remote_launch import Launcher, launch_session
    from atlasbridge.core.daemon.service import HubPlan
    from atlasbridge.fleet.member.membership import with_fleet

    config = load_configuration(home, environ)
    launchers = tuple(
        Launcher.of(item.name, item.command, item.cwd, item.folders, item.arguments, partial(launch_session, home))
        for item in config.general.launchers
    )
    plan = with_fleet(home, HubPlan(hub_settings(config), plan_channels(config), launchers, plan_rules(home, config)))
    return replace(plan, channels=tuple(_carry_excerpts(channel, config) for channel in plan.channels))


def _carry_excerpts(plan: ChannelPlan, config: Configuration) -> ChannelPlan:
    """Restrict the channel to excerpts if the configuration says so."""
    strict = config.general.prompts.strict_excerpt and plan.name != "local"
    if not strict and plan.name not in config.excerpt_only:
        return plan
    from atlasbridge.channels.excerpt_only import ExcerptChannel, ExcerptHubApi

    build = plan.build
    return replace(plan, build=lambda hub_api: ExcerptChannel(build(ExcerptHubApi(hub_api))))


def plan_channels(config: Configuration) -> tuple[ChannelPlan, ...]:
    from atlasbridge.core.daemon.service import ChannelPlan

    plans = [ChannelPlan("local", False, partial(build_channel, "local", {}))]
    for name, settings in config.channels.items():
        if name != "local":
            plans.append(ChannelPlan(name, _is_remote(name), partial(build_channel, name, settings)))
    return tuple(plans)


def plan_server_chats(path: Path, environ: Mapping[str, str], identities: Mapping[str, tuple[str, ...]]) -> ChatPlan:
    """The channels of a fleet server, from its file and for its people. Raises ConfigError."""
    from atlasbridge.channels.registry import ChannelRegistry, channel_settings
    from atlasbridge.config.server import load_server_config, plan_chats
    from atlasbridge.core.routing.router import ServerChannel

    config, idle = load_server_config(path, environ, channel_settings, channel_names(), identities)
    channels = tuple(
        ServerChannel(
            name,
            getattr(ChannelRegistry.get(name), "personal", False),
            partial(build_channel, name, settings),
            repr(settings),
        )
        for name, settings in config.channels.items()
    )
    return plan_chats(config, channels, idle, path)


def _is_remote(channel: str) -> bool:
    """As the channel's class declares; a channel that cannot be loaded is not trusted with a secret."""
    from atlasbridge.channels.registry import ChannelRegistry

    try:
        return ChannelRegistry.get(channel).remote
    except ImportError:  # reported where the channel is built
        return True


def build_channel(name: str, settings: Mapping[str, Any], hub_api: HubApi) -> Channel:
    """Only here is a channel's module imported, so that unconfigured channels cost nothing."""
    from atlasbridge.channels.registry import ChannelRegistry

    found = ChannelRegistry.get(name)
    if hasattr(found, "name"):
        return found(settings, hub_api, SystemClock())
    from atlasbridge.channels.registry import SpecifiedChannel

    return SpecifiedChannel(name, found, settings, hub_api, SystemClock())


def build_tracer(service: str, environ: Mapping[str, str]) -> PromptTracer | None:
    """Return a tracer if the environment names an OpenTelemetry collector and its packages are installed."""
    if not any(environ.get(f"OTEL_EXPORTER_OTLP_{name}") for name in ("ENDPOINT", "TRACES_ENDPOINT")):
        return None
    try:
        from atlasbridge.os.tracing import PromptTracer
    except ModuleNotFoundError as missing:
        import logging

        from atlasbridge.core.distribution import install_line

        logging.getLogger(__name__).warning(
            "no traces are sent: %s is not installed (%s)", missing.name, install_line("tracing")
        )
        return None
    return PromptTracer(service)


def run_hub(home: Home, environ: Mapping[str, str], on_ready: Callable[[], None], to_terminal: bool = False) -> None:
    """The whole life of the hub in this process. The caller has the lock."""
    import asyncio

    from atlasbridge.core.daemon.log_file import open_log
    from atlasbridge.core.daemon.service import Hub
    from atlasbridge.core.store.ledger import Ledger
    from atlasbridge.os import boot_id

    config = load_configuration(home, environ).general
    hub = config.hub
    home = replace(home, hub=Path(hub.socket)) if hub.socket else home
    open_log(home.log, hub.log_level, hub.log_max_bytes, hub.log_backups, to_terminal)
    clock = SystemClock()
    ledger = Ledger.open(home.root, clock, boot_id(), keep_raw=config.retention.keep_raw)

    async def live() -> None:
        running = Hub(home, clock, ledger, partial(plan_hub, home, environ))
        tracer = build_tracer("atlasbridge-hub", environ)
        following = asyncio.create_task(tracer.follow(running.stream.listen())) if tracer else None
        try:
            await running.run(on_ready)
        finally:
            if tracer and following:
                await following  # the stream has ended with the hub
                await asyncio.to_thread(tracer.close)

    try:
        asyncio.run(live())
    finally:
        ledger.close()


def run_session(plan: Plan, share: Callable[[str, int], str] | None = None) -> Ending:
    """Start the session host and hand this terminal over to it until the session ends or is detached."""
    if plan.backend == "conpty" or sys.platform == "win32":
        return run_console_session(plan)
    from atlasbridge.core.client.client import Client
    from atlasbridge.core.host.fork_server import start_fork_server
    from atlasbridge.core.host.launch import launch
    from atlasbridge.core.tty import Ending

    prepared = prepare_session(plan)
    client = Client(launch(plan, prepared), share=share if plan.hub else None)
    refused = client.await_start()
    if refused is None and prepared.settings.zygote:
        start_fork_server(prepared.home, os.environ)  # for later sessions
    if refused is not None or plan.detach:
        client.close()
        return refused or Ending(0)
    return client.run()


def run_console_session(plan: Plan) -> Ending:
    """The same on a Windows console: in this process, which acts as the host, or in a separate one."""
    from atlasbridge.os.windows.console import refuse_on_console, run_on_console, start_hosted

    refuse_on_console(plan)
    home, settings, detection = settle_session(plan)
    if plan.detach:
        return start_hosted(plan)
    return run_on_console(plan, home, host_parts(home, detection, console=True), settings)


def host_session(plan: Plan, prepared: Prepared, client: socket.socket) -> NoReturn:
    """In a process that the fork server has forked: run the session's host, with the caller's terminal at the other
    end."""
    from atlasbridge.core.host.launch import host_here

    host_here(plan, prepared, client)


def prepare_session(plan: Plan) -> Prepared:
    """All errors before the start of a tool are raised here. Nothing is started."""
    from atlasbridge.core.client.client import terminal_size
    from atlasbridge.core.host.analysis import Prepared
    from atlasbridge.os.tty.posix import own_line_settings

    home, settings, detection = settle_session(plan)
    attributes = None if plan.detach else own_line_settings()
    return Prepared(home, host_parts(home, detection), settings, terminal_size(), attributes)


def settle_session(plan: Plan) -> tuple[Home, SessionSettings, Mapping[str, Any]]:
    """The session's part of the configuration."""
    from atlasbridge.config.session import apart, part_for_sessions, read_session_config, refuse_unknown_channels
    from atlasbridge.core.host.relay import DetachKey

    home = Home.find(os.environ)
    home.prepare()
    whole = apart(lambda: part_for_sessions(load_configuration(home, os.environ)))
    config = read_session_config(home, os.environ, whole)
    DetachKey(config.settings.detach_key)  # report an invalid key now, not from the host
    check_dialect(home, plan)
    if plan.channels and plan.hub:
        refuse_unknown_channels(plan.channels, home, config, channel_names)
    return home, config.settings, config.detection


def attach_session(session_id: str, steal: bool = False, share: Callable[[str, int], str] | None = None) -> Ending:
    """Hand this terminal over to a running session; a session on a Windows console is displayed instead."""
    from atlasbridge.core.client.find_session import find_session, is_port

    found = find_session(Home.find(os.environ), session_id)
    if is_port(found):
        from atlasbridge.os.windows.console import attach_on_console

        return attach_on_console(found)
    from atlasbridge.core.client.client import Client

    client = Client(found, past=True, steal=steal, share=share)
    return client.await_start() or client.run()


def host_parts(home: Home, detection: Mapping[str, Any], console: bool = False) -> HostParts:
    """The parts that the session host needs; the heavier ones are imported once the tool runs. `console` is for
    Windows, which has other terminals and no probe."""
    from atlasbridge.core.host.analysis import HostParts

    starts: dict[str, ToolStart] = {}  # by session: the detector uses the same start

    def spawn(plan: Plan, size: Size, attributes: list[Any] | None) -> Pty:
        from atlasbridge.core.errors import AdapterError
        from atlasbridge.core.tty import SpawnRefused

        try:
            start = starts[plan.session_id] = _start_of(home, plan)
        except AdapterError as error:
            raise SpawnRefused(str(error), error.hint, 1) from error
        if console:
            from atlasbridge.os.tty.windows import WindowsPTY

            return WindowsPTY.spawn(start.command, start.environ, plan.cwd, size)
        from atlasbridge.core.peer import session_limits
        from atlasbridge.os.tty.posix import PosixPTY

        return PosixPTY.spawn(start.command, start.environ, None, size, attributes, plan.stderr, session_limits())

    def judge(plan: Plan, pty: Pty, size: Size) -> tuple[DetectorLike, WaitingProbe]:
        start = starts[plan.session_id]
        settings = replace(detector_settings(detection, plan.environ), folder=plan.cwd, hook_s=start.hook_s)
        detector = make_detector(home, plan, size, settings)
        if start.outside and plan.environ.get(CAPTURE) != "1":
            from atlasbridge.adapters.external_adapter import ExternalDetector

            return ExternalDetector(detector), _probe(pty, console)
        return detector, _probe(pty, console)

    def encode(*given: Any) -> Any:
        from atlasbridge.core.prompt.answer import encode_answer

        return encode_answer(*given)

    def start_hub() -> None:
        from atlasbridge.core.host.hub_link import start_hub

        start_hub(home)

    def rows_alone(plan: Plan) -> int:
        return starts[plan.session_id].rows_alone

    return HostParts(spawn, judge, encode, start_hub, str(home.socket), rows_alone)


def make_detector(home: Home, plan: Plan, size: Size, settings: DetectorSettings) -> Detector:
    from atlasbridge.core.detection.detector import Detector

    dialect = find_dialect(home, plan.dialect, plan.command[0])
    if plan.environ.get(CAPTURE) == "1":
        from atlasbridge.lab.capture import FOLDER, CapturingDetector

        return CapturingDetector(dialect, size.rows, size.cols, settings, home.root / FOLDER, plan.tool)
    return Detector(dialect, size.rows, size.cols, settings)


def detector_settings(detection: Mapping[str, Any], environ: Mapping[str, str]) -> DetectorSettings:
    """Convert the `[detection]` table into the detector's settings."""
    from atlasbridge.config.session import secret_values
    from atlasbridge.core.detection.verdict import DetectorSettings, Patience

    usual, patience = DetectorSettings(), Patience()
    return DetectorSettings(
        patience=replace(
            patience,
            settle_s=detection.get("settle_ms", patience.settle_s * 1000) / 1000,
            silence_s=detection.get("stuck_timeout_seconds", patience.silence_s),
            threshold=detection.get("detection_threshold", patience.threshold),
        ),
        slow_look_s=detection.get("stuck_poll_interval_seconds", usual.slow_look_s),
        secrets=secret_values(environ),
    )


def check_dialect(home: Home, plan: Plan) -> None:
    """Check a dialect that a person has changed or chosen, before anything starts; packaged ones are
    known to be valid."""
    if plan.dialect or any((home.root / own).is_dir() for own in ("dialects", "adapters")):
        find_dialect(home, plan.dialect, plan.command[0])


def find_dialect(home: Home, name: str, command: str) -> Dialect:
    """The dialect with that name, or the one for the command; a person's own files come first."""
    from atlasbridge.adapters.dialect_files import dialect_for, load_dialect

    own = home.root / "dialects"
    return load_dialect(name or dialect_for(command, own), own)


def read_announcements() -> None:
    """Read the entry points of installed packages; the fork server does it once for all its hosts."""
    from atlasbridge.adapters.entry_points import is_announced

    is_announced("")


def _start_of(home: Home, plan: Plan) -> ToolStart:
    """The tool's start as prepared by its adapter, with the session's id in its environment."""
    from atlasbridge.adapters.tool_start import ToolStart, prepare_start
    from atlasbridge.core.ids import short_id
    from atlasbridge.core.peer import MARK
    from atlasbridge.core.session.settings import child_environ

    environ = {**child_environ(plan.environ), MARK: plan.session_id}
    attach_socket = str(home.sessions / f"{short_id(plan.session_id)}.sock")
    start = ToolStart(plan.command, environ, attach_socket)
    return prepare_start(start, plan.tool, plan.dialect, str(home.root))


def warn_of_version(command: str) -> str:
    """A warning if the tool is known but the installed version is untested; nothing is started for it."""
    name = os.path.basename(command)
    if not os.path.exists(os.path.join(os.path.dirname(__file__), "adapters", name, "dialect.toml")):
        return ""  # most programs: no further imports
    from atlasbridge.adapters import installed

    return installed.warn_of_version(command)


def _probe(pty: Pty, console: bool) -> WaitingProbe:
    if console:
        from atlasbridge.os.tty.base import NoProbe

        return NoProbe()
    from atlasbridge.os.tty import make_probe

    return make_probe(pty.fileno(), pty.pid)


def describe_adapters(home: Home) -> list[dict[str, Any]]:
    from atlasbridge.adapters.listing import describe_adapters

    return describe_adapters(home.root)


def update_dialects(home: Home, source: str, trust: str) -> dict[str, Any]:
    from atlasbridge.adapters.dialect_updates import update

    return update(home.root, source, trust)


def revert_dialects(home: Home, names: tuple[str, ...]) -> list[str]:
    from atlasbridge.adapters.dialect_updates import remove

    return remove(home.root, names)


def updated_dialects(home: Home) -> dict[str, Any]:
    from atlasbridge.adapters.dialect_updates import read_state

    return read_state(home.root)


def find_adapter_faults(home: Home) -> dict[str, str]:
    from atlasbridge.adapters.listing import find_faults

    return find_faults(home.root)
