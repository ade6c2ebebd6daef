"""Finds the effects of a command for a short warning: deletes files, sends data to a host, runs downloaded code.

It uses the parsed command, never its characters: `echo rm` deletes nothing. It warns; it never says that something is
harmless, and no rule uses it. The texts for each effect are in the catalogues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from atlasbridge.core.escape import escape_controls
from atlasbridge.core.patterns import lazy
from atlasbridge.core.policy.grammar import EFFECTS as TABLES
from atlasbridge.core.policy.grammar import INTERPRETERS, SHELLS, WRAPPERS, program_of
from atlasbridge.core.policy.shell import Node, Parser, nodes, read_word
from atlasbridge.core.prompt.model import Prompt, SubjectKind
from atlasbridge.core.values import frozen, replace

EFFECTS: Final = "effects"  # key of a prompt's constraints: a list of {"kind", "target"}
MOST: Final = 4
DEEPEST: Final = 4
TARGET_LIMIT: Final = 80

# Ordered by severity, which is also the order of display.
KINDS: Final = (
    *("runs_downloaded", "runs_hidden", "deletes", "deletes_with", "formats", "discards", "force_pushes", "pushes"),
    *("publishes", "sends", "runs_on", "as_root", "turns_off", "deploys", "overwrites", "stops", "permissions"),
    *("schedules", "installs", "downloads"),
)


@frozen
class Effect:
    kind: str
    target: str = ""


Words = tuple[str, ...]

_WRAPPERS: dict[str, Sequence[str]] = {**{name: one.values for name, one in WRAPPERS.items()}, **TABLES["wrapper"]}
_SKIPS = {"chroot": 1} | {name: one.skip for name, one in WRAPPERS.items()}
_ROOT = frozenset({"sudo", "doas", "pkexec", "su", "runuser"})
_HOST = lazy(r"(?:[a-z][a-z0-9+.-]*://)?(?:[^/@\s]*@)?(\[[0-9a-fA-F:]+\]|[\w.-]+)(?::\d+)?(?:[/?#].*)?", 16)
_REMOTE = lazy(r"(?:[\w.-]+@)?(\[[0-9a-fA-F:]+\]|[\w.-]+):(?!//).*|(?:ssh|rsync|sftp)://(?:[^/@]*@)?([^/:]+).*", 16)
_SENDS = lazy(
    r"-d|--data.*|--json.*|-F|--form.*|-T|--upload-file.*|--post-(?:data|file).*|--body-(?:data|file).*|-d.+|-F.+|-T.+"
)
_METHOD = lazy(r"(?:-X|--request=|--method=)?(POST|PUT|PATCH|DELETE)", 2)
_CLOUDS = frozenset({"aws", "gcloud", "az", "doctl", "s3cmd", "gsutil", "rclone"})
_CLOUD_DELETES = lazy(r"rm|rb|delete.*|terminate.*|remove.*|purge|destroy")
_CLOUD_SENDS = lazy(r"cp|sync|mv|put.*|copy|upload")
_DELETERS = frozenset({"rm", "rmdir", "unlink", "shred", "srm", "trash", "del", "rd", "Remove-Item"})
_FORMATTERS = lazy(r"mkfs(?:\..*)?|fdisk|sfdisk|parted|wipefs|mkswap|cryptsetup|lvremove|vgremove|zpool")
_CODE_OPTIONS = frozenset({"-c", "-e", "-E", "-r", "--eval", "--command", "-p", "-lc", "-ic", "-ec"})
_SQL = lazy(r"\b(?:drop|truncate|delete)\s+(?:table|database|schema|from|collection|index|view|table\b)", 2)
_SQL_CLIENTS = frozenset({"psql", "mysql", "mariadb", "sqlite3", "mongosh", "mongo", "clickhouse-client", "sqlcmd"})


def with_effects(prompt: Prompt, parse: Parser) -> Prompt:
    """Adds the effects of its command to the prompt. For an incomplete command, the effects of the known part."""
    subject = prompt.subject
    if subject is None or subject.kind is not SubjectKind.COMMAND or prompt.secret:
        return prompt
    found = decide_effects(subject.text or subject.shown, parse)
    if not found:
        return prompt
    told = [{"kind": one.kind, "target": one.target} for one in found]
    return replace(prompt, constraints={**prompt.constraints, EFFECTS: told})


def decide_effects(text: str, parse: Parser) -> list[Effect]:
    """The most severe effects first; none if the command cannot be parsed or is unknown."""
    reader = _Reader(parse)
    reader.text(text, 0)
    deletes = Effect("deletes") in reader.found
    found = [one for one in reader.found if not (deletes and one.kind == "deletes_with")]
    return sorted(found, key=lambda one: KINDS.index(one.kind))[:MOST]


class _Reader:
    def __init__(self, parse: Parser) -> None:
        self._parse = parse
        self.found: dict[Effect, None] = {}

    def add(self, kind: str, target: str = "") -> None:
        self.found.setdefault(Effect(kind, escape_controls(target, keep_lines=False)[:TARGET_LIMIT]))

    def text(self, text: str, depth: int) -> None:
        tree = self._parse(text) if depth <= DEEPEST and text.strip() else None
        if tree is None:
            return
        for node in nodes(tree):
            if node.get("Type") == "CallExpr":
                self._call(node, depth)
            elif node.get("Type") == "BinaryCmd" and node.get("Op") in ("|", "|&"):
                self._pipe(node)
            for redirect in node.get("Redirs") or ():
                self._redirect(redirect)

    def _call(self, node: Node, depth: int) -> None:
        args = node.get("Args") or ()
        words = tuple(read_word(word).text for word in args)
        if not words:
            return
        inner = self.unwrapped(words)
        if not inner:
            return
        name = program_of(inner[0])
        if name in SHELLS or name in ("eval", "source", ".") or name in INTERPRETERS:
            self._runs(name, inner, args, depth)
        if inner[0] == "" and args and any(part.get("Type") != "Lit" for part in args[0].get("Parts") or ()):
            self.add("runs_hidden")  # the program's name comes from a variable or a substitution
        self.command(name, inner, depth)

    def unwrapped(self, words: Words) -> Words:
        """Removes wrappers: `sudo -u x env A=b rm y` is `rm y`, run as root."""
        while words and program_of(words[0]) in (*_WRAPPERS, *_ROOT):
            name = program_of(words[0])
            if name in _ROOT:
                self.add("as_root")
            if name in ("su", "runuser"):
                return words
            rest, takes = words[1:], _WRAPPERS.get(name, ())
            while rest and (rest[0].startswith("-") or (name in ("env", "sudo", "doas") and "=" in rest[0])):
                rest = rest[2:] if rest[0] in takes else rest[1:]
            words = rest[_SKIPS.get(name, 0) :]
        return words

    def _runs(self, name: str, words: Words, args: Sequence[Node], depth: int) -> None:
        """A shell or an interpreter: its code is in its arguments, comes from elsewhere, or is unreadable."""
        inside = [part for part in nodes(list(args)) if part.get("Type") in ("CmdSubst", "ProcSubst")]
        if any(_downloads(_programs(part)) for part in inside):
            self.add("runs_downloaded")
        if name in ("eval", "source", ".") and any(not read_word(word).text for word in args[1:]) and not inside:
            self.add("runs_hidden")
        if name == "eval":
            self.text(" ".join(words[1:]), depth + 1)
        for place, word in enumerate(words[:-1]):
            if place and name in SHELLS and (word in _CODE_OPTIONS or (word.startswith("-") and word.endswith("c"))):
                self.text(words[place + 1], depth + 1)
        if name in ("su", "runuser") and "-c" in words[:-1]:
            self.text(words[words.index("-c") + 1], depth + 1)

    def _pipe(self, node: Node) -> None:
        """The input of a shell is run by it."""
        last = _programs(node["Y"])
        if not any(_reads_code(words) for words in last):
            return
        first = _programs(node["X"])
        if _downloads(first):
            self.add("runs_downloaded")
        elif any(program_of(words[0]) in ("base64", "base32", "xxd", "openssl", "gzip", "gunzip") for words in first):
            self.add("runs_hidden")

    def _redirect(self, node: Node) -> None:
        word = read_word(node.get("Word") or {})
        is_file = word.text not in ("", "0", "1", "2") and not word.text.startswith(("/dev/", "&"))
        if node.get("Op") in (">", ">|", "&>") and is_file:
            self.add("overwrites", word.text)
        if node.get("Op") in (">", ">>", ">|", "<>") and word.text.startswith(("/dev/tcp/", "/dev/udp/")):
            self.add("sends", word.text.split("/")[3])
        if node.get("Op") in (">", ">|") and word.text.startswith(("/dev/sd", "/dev/nvme", "/dev/disk", "/dev/mmc")):
            self.add("formats", word.text)

    def command(self, name: str, words: Words, depth: int) -> None:
        rest = words[1:]
        doer = _DOERS.get(name)
        if doer is not None:
            doer(self, rest)
        if name in _DELETERS:
            self.add("deletes")
        elif _FORMATTERS.fullmatch(name):
            self.add("formats", next((word for word in rest if word.startswith("/dev/")), ""))
        elif name in _CLOUDS:
            self._cloud(name, rest)
        elif name in _SQL_CLIENTS and any(_SQL.search(word) for word in rest):
            self.add("deletes_with", name)
        self._by_subcommand(name, rest)
        if name in ("find", "fd"):
            self._find(rest, depth)
        if name in ("docker", "podman") and rest[:1] in (("exec",), ("run",)):
            self._suffixes(rest[1:], depth)
        if name == "xargs" or name == "ssh":
            return
        if name in ("npx", "bunx", "uvx") or (name in ("npm", "pnpm", "yarn") and rest[:1] in (("exec",), ("dlx",))):
            self.add("installs")

    def _by_subcommand(self, name: str, rest: Words) -> None:
        doing = next((word for word in rest if not word.startswith("-")), "")
        first = {doing, *rest[:1]}
        for kind in ("installs", "publishes", "deploys"):
            wanted = TABLES[kind].get(name)
            fits = wanted is not None and (first & set(wanted) or not wanted)
            if fits and (name != "gh" or _writes_at_github(rest)):
                self.add(kind, "" if kind == "installs" else name)
        if set(rest[:3]) & set(TABLES["deletes_with"].get(name, ())):
            self.add("deletes_with", name)

    def _find(self, rest: Words, depth: int) -> None:
        if "-delete" in rest:
            self.add("deletes")
        for place, word in enumerate(rest[:-1]):
            if word in ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec"):
                inner = self.unwrapped(tuple(item for item in rest[place + 1 :] if item not in (";", "+")))
                if inner:
                    self._inner(inner, depth)

    def _suffixes(self, rest: Words, depth: int) -> None:
        for place, word in enumerate(rest):
            if program_of(word) in (*SHELLS, *_DELETERS):
                self._inner(rest[place:], depth)
                return

    def _inner(self, words: Words, depth: int) -> None:
        name = program_of(words[0])
        if name in SHELLS:
            self._runs(name, words, (), depth)
        self.command(name, words, depth + 1)

    def _cloud(self, name: str, rest: Words) -> None:
        doing = [word for word in rest if not word.startswith("-")]
        if any(_CLOUD_DELETES.fullmatch(word) for word in doing[:3]):
            self.add("deletes_with", name)
        elif any(_CLOUD_SENDS.fullmatch(word) for word in doing[:3]):
            self.add("sends", next((word for word in reversed(doing) if "://" in word or ":" in word), name))

    def fetch(self, rest: Words) -> None:
        """curl, wget, http: the target of an upload, or the source of a download."""
        sends = any(_SENDS.fullmatch(word) or _METHOD.fullmatch(word) for word in rest)
        target = next((host for word in rest if not word.startswith("-") and (host := _host_of(word))), "")
        self.add("sends" if sends else "downloads", target)
        for place, word in enumerate(rest[:-1]):
            is_file = "://" not in rest[place + 1] and not rest[place + 1].startswith(("-", "/dev/"))
            if word in ("-o", "--output", "-O") and is_file:
                self.add("overwrites", rest[place + 1])

    def copy_away(self, rest: Words) -> None:
        """scp, rsync, sftp: to another host, or from it."""
        paths = [word for word in rest if not word.startswith("-")]
        found = _REMOTE.fullmatch(paths[-1]) if paths else None
        if found:
            self.add("sends", found[1] or found[2] or "")
        else:
            hosts = [match[1] or match[2] or "" for word in paths[:-1] if (match := _REMOTE.fullmatch(word))]
            if hosts:
                self.add("downloads", hosts[0])
        if any(word.startswith("--delete") or word == "--remove-source-files" for word in rest):
            self.add("deletes")

    def connect(self, rest: Words) -> None:
        """nc and similar: sends and receives unknown data."""
        target = next((word for word in rest if not word.startswith("-")), "")
        if target and not target.isdigit() and "-l" not in rest:
            self.add("sends", _host_of(target) or target)

    def remote_shell(self, rest: Words) -> None:
        takes = ("-p", "-i", "-l", "-o", "-L", "-R", "-D", "-F", "-J", "-b", "-c", "-E", "-m", "-W")
        words = list(rest)
        while words and words[0].startswith("-"):
            words = words[2:] if words[0] in takes else words[1:]
        if words:
            self.add("runs_on", words[0].rpartition("@")[2])

    def git(self, rest: Words) -> None:
        while rest and rest[0].startswith("-"):
            rest = rest[2:] if rest[0] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace") else rest[1:]
        if not rest:
            return
        doing, options = rest[0], [word for word in rest[1:] if word.startswith("-")]
        plain = [word for word in rest[1:] if not word.startswith("-")]
        short = {letter for word in options if not word.startswith("--") for letter in word[1:]}
        match doing:
            case "push":
                self._push(plain, options, short)
            case "clean" if "f" in short or "--force" in options:
                self.add("deletes")
            case "rm":
                self.add("deletes")
            case "reset" if {"--hard", "--merge", "--keep"} & set(options):
                self.add("discards")
            case "restore" if "--staged" not in options or "--worktree" in options:
                self.add("discards")
            case "checkout" if "--" in rest or "f" in short or "--force" in options or "." in plain:
                self.add("discards")
            case "switch" if {"--force", "--discard-changes"} & set(options) or "f" in short:
                self.add("discards")
            case "stash" if plain[:1] in (["drop"], ["clear"]):
                self.add("discards")
            case "branch" | "tag" if {"d", "D"} & short or "--delete" in options:
                self.add("deletes_with", f"git {doing}")
            case "filter-branch" | "filter-repo":
                self.add("discards")
            case "clone" | "fetch" | "pull":
                host = next((found for word in plain if (found := _repository(word))), "")
                if host:
                    self.add("downloads", host)

    def _push(self, plain: list[str], options: list[str], short: set[str]) -> None:
        remote = plain[0] if plain else ""
        branch = plain[1] if len(plain) > 1 else ""
        forced = "f" in short or branch.startswith("+") or any(word.startswith("--force") for word in options)
        gone = "d" in short or "--delete" in options or branch.startswith(":")
        place = "/".join(
            part for part in (_repository(remote) or remote, branch.lstrip("+:").rpartition(":")[2]) if part
        )
        self.add("force_pushes" if forced else "pushes", place)
        if gone:
            self.add("deletes_with", "git push")

    def overwrite_all(self, rest: Words) -> None:
        for word in rest:
            if not word.startswith("-") and not word.startswith("/dev/null"):
                self.add("overwrites", word)
                return

    def edit_in_place(self, rest: Words) -> None:
        if any(word.startswith(("-i", "--in-place")) or (word.startswith("-p") and "i" in word) for word in rest):
            paths = [word for word in rest if not word.startswith("-")]
            self.add("overwrites", paths[-1] if len(paths) > 1 else "")

    def copy_blocks(self, rest: Words) -> None:
        target = next((word[3:] for word in rest if word.startswith("of=")), "")
        if target.startswith("/dev/") and target != "/dev/null":
            self.add("formats", target)
        elif target and target != "/dev/null":
            self.add("overwrites", target)

    def system_control(self, rest: Words) -> None:
        doing = next((word for word in rest if not word.startswith("-")), "")
        if doing in ("reboot", "poweroff", "halt", "suspend", "hibernate", "kexec"):
            self.add("turns_off")
        elif doing in ("stop", "restart", "kill", "isolate", "try-restart"):
            self.add("stops")


def _host_of(word: str) -> str:
    """The host of a URL, or of what curl accepts as one, without user name and password."""
    found = _HOST.fullmatch(word)
    host = found[1].lower() if found else ""
    named = "://" in word or ("." in host and not host.endswith((".json", ".txt", ".sh", ".html", ".zip", ".gz")))
    return host if named or host == "localhost" else ""


def _repository(word: str) -> str:
    if "://" in word:
        return _host_of(word)
    found = _REMOTE.fullmatch(word)
    return (found[1] or found[2] or "") if found else ""


def _programs(tree: Any) -> list[Words]:
    """The simple commands below a node, without their wrappers."""
    quiet = _Reader(lambda text: None)
    calls = [node for node in nodes(tree) if node.get("Type") == "CallExpr"]
    found = [quiet.unwrapped(tuple(read_word(word).text for word in node.get("Args") or ())) for node in calls]
    return [words for words in found if words]


def _downloads(commands: Iterable[Words]) -> bool:
    return any(program_of(words[0]) in ("curl", "wget", "fetch", "http", "https", "aria2c") for words in commands)


def _reads_code(words: Words) -> bool:
    """Whether it is a shell or an interpreter without a script: then it runs its input."""
    name = program_of(words[0])
    if name not in SHELLS and name not in INTERPRETERS:
        return False
    given = [word for word in words[1:] if not word.startswith("-") or word == "-"]
    has_code = any(word in _CODE_OPTIONS for word in words[1:])
    return not has_code and (not given or given[0] == "-" or "-s" in words)


def _writes_at_github(rest: Words) -> bool:
    return (*rest, "", "")[1] in ("create", "merge", "close", "edit", "delete", "upload", "comment", "review", "reopen")


_DOERS: Final[Mapping[str, Callable[[_Reader, Words], None]]] = {
    "git": _Reader.git,
    **dict.fromkeys(("curl", "wget", "http", "https", "xh", "aria2c"), _Reader.fetch),
    **dict.fromkeys(("scp", "rsync", "sftp"), _Reader.copy_away),
    **dict.fromkeys(("nc", "ncat", "netcat", "telnet", "socat"), _Reader.connect),
    **dict.fromkeys(("ssh", "mosh"), _Reader.remote_shell),
    **dict.fromkeys(("chmod", "chown", "chgrp", "setfacl", "chattr"), lambda reader, rest: reader.add("permissions")),
    **dict.fromkeys(("kill", "pkill", "killall", "xkill"), lambda reader, rest: reader.add("stops")),
    **dict.fromkeys(("reboot", "shutdown", "poweroff", "halt"), lambda reader, rest: reader.add("turns_off")),
    **dict.fromkeys(
        ("crontab", "at", "batch"), lambda reader, rest: reader.add("schedules") if "-l" not in rest else None
    ),
    **dict.fromkeys(("truncate", "tee"), lambda reader, rest: reader.overwrite_all(rest) if "-a" not in rest else None),
    **dict.fromkeys(("sed", "perl"), _Reader.edit_in_place),
    "dd": _Reader.copy_blocks,
    **dict.fromkeys(("systemctl", "service"), _Reader.system_control),
    **dict.fromkeys(
        ("mail", "sendmail", "mutt"), lambda reader, rest: reader.add("sends", next((w for w in rest if "@" in w), ""))
    ),
}
