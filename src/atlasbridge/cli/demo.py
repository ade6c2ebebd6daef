"""`atlasbridge demo`: runs a sample agent under AtlasBridge that asks some questions."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import click

from atlasbridge.cli.printing import hub_client
from atlasbridge.cli.run import needs_unix, own_name
from atlasbridge.core.errors import AtlasBridgeError, HubUnavailable
from atlasbridge.core.home import Home
from atlasbridge.core.process import own_environ, own_python
from atlasbridge.core.tty import LEFT

WHERE = """A sample agent starts now. It asks six
questions and changes nothing: a
command, a version, an edit, a note, a
password, and one you should refuse.

Answer here, or in another terminal
(in any folder) with
  {us}
and one of these:
  approvals       list and answer all
  reply demo y    answer one
  web             open the page
"""
HEARS_S = 10.0
NEXT = """That was the demo. Next, your own tool:
  {us} {wrap}run claude
"""


@click.command("demo")
@click.option("-q", "--quiet", is_flag=True, help="Do not explain where to answer.")
@click.option("--tour", is_flag=True, help="Only watch: the demo answers each question itself.")
def command(quiet: bool, tour: bool) -> int:
    """Run a sample agent that asks six questions and changes nothing."""
    from atlasbridge.cli.printing import home
    from atlasbridge.cli.run import run_here as run
    from atlasbridge.core.daemon.request import lock_holder

    needs_unix("demo", "ask a question instead: atlasbridge ask QUESTION")
    place = home()
    had_hub = lock_holder(place.lock) is not None
    _drop_typed_ahead()
    if not quiet:
        click.echo(WHERE.format(us=own_name()))
    sys.stdout.flush()
    os.environ["ATLASBRIDGE_SESSION_ZYGOTE"] = "0"  # a fork server for one session would remain running
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # respects `nohup`
        signal.signal(signal.SIGHUP, lambda *_: None)  # not in the middle of a start: without a terminal it ends soon
    detached = False
    try:
        with _tour() if tour else nullcontext(), _lifeline() as (reader, writer):
            agent = own_python("atlasbridge.lab.demo_agent", str(reader), str(writer))
            status = run(["--name", "demo", "--", *agent], announce=had_hub)
            detached = status == LEFT and sys.stdin.isatty()  # by its person; the terminal has not disappeared
            if detached:
                os.write(writer, b"stay")
        if not (detached or quiet):
            narrow = len(own_name()) > shutil.get_terminal_size().columns - len("   run claude")
            click.echo(NEXT.format(us=own_name(), wrap="\\\n    " if narrow else ""))
            sys.stdout.flush()
    finally:
        if not (detached or had_hub):
            _stop_idle_hub(place)
    return status


@contextmanager
def _tour() -> Iterator[None]:
    """Another process answers, like a person at another terminal."""
    words = own_python("atlasbridge.cli.demo", "demo")
    with subprocess.Popen(words, env=own_environ(os.environ), stdin=subprocess.DEVNULL, start_new_session=True) as it:
        try:
            yield
        finally:
            it.terminate()


@contextmanager
def _lifeline() -> Iterator[tuple[int, int]]:
    """A pipe by which the sample agent notices that the demo has ended, in whatever way. Both ends are inheritable: the
    session host closes such descriptors, and the agent closes the writing end."""
    reader, writer = os.pipe()
    for fd in (reader, writer):
        os.set_inheritable(fd, True)
    try:
        yield reader, writer
    finally:
        os.close(reader)
        os.close(writer)


def _drop_typed_ahead() -> None:
    """Keys typed while `make run` installed are no answers to questions that nobody has seen."""
    import termios  # not on Windows, where the demo does not run

    if sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


def _stop_idle_hub(place: Home) -> None:
    """Stop the hub that the demo started, unless it has other sessions by now. It hears of the end of the demo's own
    session only a moment after its client has left."""
    from atlasbridge.core.daemon.request import HubClient, stop_hub

    give_up_at = time.monotonic() + HEARS_S
    try:
        with HubClient(place, timeout_s=5.0) as hub:
            while running := hub.ask("sessions")["sessions"]:
                if time.monotonic() > give_up_at or any(one["label"] != "demo" for one in running):
                    return
                time.sleep(LOOK_S)
    except HubUnavailable:
        pass  # it is perhaps still starting
    stop_hub(place)


# Answers the questions of the demo automatically, slowly enough to watch: for `demo --tour`.
#
# It is a separate process, like a person at another terminal.


READ_S = 2.5  # how long a question is shown before it is answered
LOOK_S = 0.2
PATIENCE_S = 60.0
ANSWERS = ("y", "2", "y", "what people asked for", "a-sample-password", "n")


def answer_all(session_label: str) -> int:
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
    sys.exit(answer_all(sys.argv[1]))
