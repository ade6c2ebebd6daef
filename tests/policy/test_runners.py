"""A wildcard never stands for a program: not behind one that runs what it is given, not in an option, no alias."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atlasbridge.core.policy.judge import judge
from atlasbridge.core.policy.reader import read_policy
from atlasbridge.core.policy.rule import Case
from atlasbridge.core.prompt.model import Subject, SubjectKind, SubjectSource
from atlasbridge.core.routing.shell_parser import ShellParser

RUNNERS = """
nsenter unshare chroot setarch taskset chrt numactl systemd-run dbus-run-session xvfb-run firejail bwrap proot
fakeroot eatmydata valgrind rlwrap unbuffer expect ssh-agent direnv dotenv doppler aws-vault chamber cross-env
nodemon concurrently entr watchexec su sg runuser pkexec setpriv capsh sshpass autossh mosh pssh parallel-ssh
clush salt ltrace strace script tmux screen ansible nix-shell nix guix conda mamba micromamba pdm rye hatch
vagrant lxc nerdctl crictl runc machinectl systemd-nspawn toybox cmd.exe powershell.exe elvish nu xonsh tclsh
wish gnuplot m4 mariadb mongosh lftp rsh rexec patch gs convert magick mogrify csplit ssh-keygen ffmpeg
"""
OPTIONS = [
    "split --filter=id x",
    "tcpdump -z id -G 1 -w x",
    "bat --pager=id x",
    "bat --pager id x",
    "fzf --preview id",
    "fzf --bind 'enter:execute(id)'",
    "ld --plugin x",
    "ip netns exec x id",
    "ip -batch f",
    "xxd -r x y",
    "xxd x y",
    "somebody --exec=id",
    "somebody --exec id",
    "somebody --post-exec=id x",
    "somebody --eval 'x'",
    "somebody --shell=/tmp/x",
    "somebody --script-shell /tmp/x",
    "somebody --EDITOR=id",
    "somebody --plugin ./x.js",
    "somebody --preload=./x.so",
    "somebody --rsh=id x",
    "pip install x",
    "bazel run //x",
]
ALIASES = ["git st", "git x-alias", "git my.alias -n", "git Status", "git apply x", "git am x", "git cherry-pick x"]
HARMLESS = [
    "git --no-pager log",
    "git status --short",
    "somebody --help",
    "somebody --no-exec",
    "somebody --verbose --filter x",
    "somebody tests/node -k evaluation",
    "bat x.py",
    "split -l 5 x",
    "pip list",
]


@pytest.fixture(scope="module")
def parser() -> Iterator[ShellParser]:
    made = ShellParser()
    yield made
    made.close()


def verdict(text: str, parser: ShellParser) -> str:
    program = text.split()[0]
    rules = f'[[rule]]\nname = "r"\nverdict = "allow"\ncommand = ["{program}", "**"]\n'
    subject = Subject(SubjectKind.COMMAND, text, "/home/me/src", SubjectSource.HOOK, True, text)
    return judge(read_policy(rules, parser, home="/home/me"), Case(subject, "claude"), parser).verdict.value


def test_a_program_that_runs_what_it_is_given_is_asked_about(parser: ShellParser) -> None:
    tried = [f"{runner} {rest}" for runner in RUNNERS.split() for rest in ("x rm -rf y", "-a b evil", "evil")]
    assert [text for text in tried if verdict(text, parser) == "allow"] == []


def test_a_program_nobody_knows_is_asked_about_once_it_is_given_one_that_runs_or_destroys(parser: ShellParser) -> None:
    tried = ["somebody rm x", "somebody -- sh x", "somebody 5 /bin/bash -c x", "somebody -n sudo x", "somebody env x"]
    assert [text for text in tried if verdict(text, parser) == "allow"] == []


def test_an_option_whose_name_says_that_it_runs_or_loads_something_is_asked_about(parser: ShellParser) -> None:
    assert [text for text in OPTIONS if verdict(text, parser) == "allow"] == []


def test_a_subcommand_that_git_does_not_have_is_somebodys_alias(parser: ShellParser) -> None:
    assert [text for text in ALIASES if verdict(text, parser) == "allow"] == []


def test_what_does_none_of_this_is_allowed_as_before(parser: ShellParser) -> None:
    assert [text for text in HARMLESS if verdict(text, parser) != "allow"] == []
