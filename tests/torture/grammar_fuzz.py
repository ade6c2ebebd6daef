"""Random words of every grammar, given to the real programs that are installed: `python -m tests.torture grammar_fuzz`.

Each command is one that a rule with `**` would allow.  strace watches what the program opens, changes and starts: it
must write nothing outside its folder, start no other program, and never open the file that its texts name.  There is no
network.  Scripts of sed and awk have a fuzz of their own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from random import Random

from atlasbridge.core.policy.grammar import PROGRAMS, Grammar, Option, WorkFolder, find_grammar, first_doubt

# What such a program is for is to run others, or the project's own code: only its files are watched.
RUNNERS = frozenset(
    {
        *(
            "make",
            "ninja",
            "just",
            "task",
            "rake",
            "gradle",
            "mvn",
            "ant",
            "invoke",
            "inv",
            "bazel",
            "npm",
            "pnpm",
            "yarn",
        ),
        *(
            "cargo",
            "go",
            "tox",
            "nox",
            "pytest",
            "unittest",
            "jest",
            "vitest",
            "mocha",
            "rspec",
            "dotnet",
            "mix",
            "swift",
        ),
        *("man", "less", "bat", "git commit", "git pull", "git fetch", "git push", "git help", "git submodule status"),
        *("mypy", "ruff check", "black", "isort", "pylint", "flake8", "git stash push", "git add", "git ls-remote"),
        *("git fsck", "git format-patch", "git submodule", "pip", "yq"),
    }
)
# What these are for is to reach others: what they ask for goes nowhere, because the jail has no network.
NETWORK = frozenset(
    {
        *("netstat", "ping", "dig", "host", "nslookup", "curl", "docker", "kubectl", "gh", "aws", "terraform", "npm"),
        *("go", "cargo", "git", "pip", "mvn", "gradle"),
    }
)
STARTS = {"gh": ("/git",), "docker": ("/docker-", "/cli-plugins/")}  # what they start by themselves, to look around
SYSTEM = (
    "/usr",
    "/lib",
    "/etc",
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/var/lib",
    "/var/cache",
    "/var/log/journal",
    "/bin",
    "/sbin",
    "/opt",
    f"{Path.home()}/.",
)
TRACED = (
    "execve,open,openat,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,link,linkat,symlink,"
    "symlinkat,chmod,fchmodat,truncate,connect"
)
WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC")
CALL = re.compile(r"(\w+)\((.*)\)\s+= (-?\d+)")
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
PROJECT = {
    "package.json": '{"name": "x", "version": "1.0.0", "scripts": {"test": "true", "x": "true"}}',
    "Cargo.toml": '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2018"\n[lib]\npath = "lib.rs"\n',
    "lib.rs": "#[test]\nfn x() {}\n",
    "go.mod": "module x\n\ngo 1.19\n",
    "x.go": "package x\n",
    "main.tf": "",
    "compose.yaml": "services: {x: {image: x}}\n",
    "Rakefile": "task :x\n",
    "justfile": "x:\n",
}
FILES = ("a.txt", "b.txt", "src/c.py", "tests/test_d.py", "e.json", "f.tar", "Makefile")


def main(
    count: int = 40,  # commands of each grammar
    seed: int = 1,
    only: str = "",  # one program
) -> int:
    seen: Counter[str] = Counter()
    wrong = 0
    scripts = (fuzz_scripts(name, seed, count * 500, seen) for name in READERS if only in ("", name))
    for line in chain(fuzz(seed, count, seen, only), *scripts):
        print(f"grammar_fuzz: {line}", flush=True)
        wrong += 1
    print(f"grammar_fuzz: {sum(seen.values())} commands of {len(seen)} installed grammars, {wrong} things were wrong")
    return 1 if wrong else 0


def fuzz(seed: int, count: int, seen: Counter[str], only: str = "") -> Iterator[str]:
    assert shutil.which("strace"), "strace is not installed: run tools/install-extras"
    for name in PROGRAMS:
        program = name.split(" ")[0]
        grammar = find_grammar(name)
        if grammar is None or (only and program != only) or not installed(program):
            continue
        random = Random(f"{seed} {name}")
        with tempfile.TemporaryDirectory() as folder:
            room, secret = furnish(Path(folder).resolve())
            for _ in range(count):
                yield from _try(grammar, random, room, secret, seen)


@cache
def installed(program: str) -> str:
    """By which name it is installed here; "" where it is not."""
    names = (program, {"fd": "fdfind", "bat": "batcat"}.get(program, program))
    return next((name for name in names if shutil.which(name)), "")


def _try(grammar: Grammar, random: Random, room: Path, secret: Path, seen: Counter[str]) -> Iterator[str]:
    program, *subcommands = grammar.name.split(" ")
    words = [installed(program), *subcommands, *_words(grammar, random, secret)]
    if first_doubt(words, WorkFolder(str(room))):
        return  # a value that the grammar does not take after all
    seen[grammar.name] += 1
    shim = "/shims/" in str(shutil.which(words[0]))  # of pyenv and its like: a script that looks for the program
    runs = grammar.name in RUNNERS or program in RUNNERS or shim
    yield from (f"{words}: {what}" for what in watch(words, room, secret, runs))


# Texts that only look like harmless scripts of sed and awk, if there are any: whatever the table takes is run by every
# such program that is installed, in a folder where nothing may appear.

PIECES = {
    "sed": (
        *"s/|#,[]^$\\ .*!;pdqgwe1x&{}\n=rIyab:",
        "s/",
        "/p;",
        "s|",
        "|x|",
        "[/",
        "]/",
        "/w m",
        "/e;#",
        "touch m",
        "[^",
        "[:",
        ":]",
    ),
    "awk": (
        *'{}()[]/"\\;,$!~<>|+-*%^?:=&\n xn1',
        "print",
        'system("touch m")',
        '"m"',
        "if",
        "/[",
        "]/",
        "else",
        "getline",
        'print>"m"',
        "x",
        "||",
        ' "',
    ),
}
READERS = {"sed": ("sed", "busybox sed"), "awk": ("mawk", "gawk", "original-awk", "busybox awk")}
_SHAPES = {
    "sed": ("s/{}/{}/{}", "s|{}|{}|{}", "/{}/{}", "{}", "s/{}[/{}/p;s|{}|]/{}/{}|", "/[{}/]/{};/{}/p"),
    "awk": ("/{}/{}", "{}", "{{{}/{}}}", "/[{}/{}]/{}", "if({})/{}/{}", '"{}"/{}/{}'),
}


def fuzz_scripts(program: str, seed: int, count: int, seen: Counter[str]) -> Iterator[str]:
    """So many scripts are made; those that the table takes are run."""
    random = Random(f"{seed} scripts of {program}")
    readers = [reader.split() for reader in READERS[program] if shutil.which(reader.split()[0])]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a").write_text("A/B x\n")
        for _ in range(count):
            shape = random.choice(_SHAPES[program])
            fill = ("".join(random.choices(PIECES[program], k=random.randrange(5))) for _ in range(shape.count("{}")))
            script = shape.format(*fill)
            if not script or first_doubt([program, script, "a"], WorkFolder(folder)):
                continue
            for reader in readers:
                seen[f"scripts of {' '.join(reader)}"] += 1
                try:
                    subprocess.run(
                        [*reader, script, "a"],
                        cwd=folder,
                        stdin=subprocess.DEVNULL,
                        capture_output=True,
                        timeout=2,
                        check=False,
                    )
                except subprocess.TimeoutExpired:
                    pass  # `while(1)` does no harm
                if sorted(os.listdir(folder)) != ["a"]:
                    yield f"{' '.join(reader)} has made a file: {script!r}"
                    for name in set(os.listdir(folder)) - {"a"}:
                        Path(folder, name).unlink()


def furnish(folder: Path) -> tuple[Path, Path]:
    """A folder with some files and a repository, and a file outside it that nobody may read."""
    room, secret = folder / "room", folder / "outside" / "secret.txt"
    for place in (room / "src", room / "tests", secret.parent, folder / "home"):
        place.mkdir(parents=True)
    secret.write_text("secret\n")
    for name in FILES:
        (room / name).write_text({"e.json": '{"a": [1, 2]}', "Makefile": "x:\n"}.get(name, "b 1\na 2\n"))
    for name, text in PROJECT.items():
        (room / name).write_text(text)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder / "home")}
    for step in (["init", "-q"], ["add", "."], ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x"]):
        subprocess.run(["git", *step], cwd=room, env=environment, check=True, capture_output=True)
    return room, secret


def _words(grammar: Grammar, random: Random, secret: Path) -> list[str]:
    words: list[str] = []
    options = list(grammar.options.values())
    for option in random.sample(options, min(len(options), random.choice((0, 1, 1, 2, 3)))):
        words += _option(option, random, secret)
    for kind in grammar.words:
        for _ in range(random.choice((0, 1, 2)) if kind.endswith("*") else random.choice((0, 1))):
            words.append(_value(kind.rstrip("*"), random, secret))
    return words


def _option(option: Option, random: Random, secret: Path) -> list[str]:
    if option.name == "-NUMBER":
        return ["-3"]
    if not option.kind or (option.attached and not option.must and random.random() < 0.5):
        return [option.name]
    value = _value(option.kind, random, secret)
    if option.attached or (option.name.startswith("--") and random.random() < 0.5):
        return [f"{option.name}={value}"]
    return [option.name, value]


VALUES: dict[str, tuple[str, ...]] = {
    "path": FILES,
    "find": (*FILES, "."),
    "go_package": ("./...",),
    "revision": ("HEAD", "a.txt", "HEAD~0", "HEAD:a.txt"),
    "test": FILES,
    "test_file": ("tests/test_d.py",),
    "number": ("1", "5"),
    "range": ("1", "1-2"),
    "name": ("x", "a", "master"),
    "names": ("x", "a,b"),
    "time": ("yesterday",),
    "sed": ("p", "s/a/b/", "1,2p", "$d"),
    "awk": ("{print $1}", "/a/", "NR==1{print NF}"),
    "jq": (".", ".a"),
    "yq": (".",),
    "target": ("x",),
    "date": ("+%Y",),
    "glob": ("*.py", "a*"),
    "suffix": ("py",),
    "package": ("x",),
    "output": ("json",),
    "ps": ("aux",),
    "off": ("no:x",),
    "mark": ("x",),
    "label": ("x",),
    "resource": ("x",),
    "test_name": ("x",),
    "nowhere": ("/dev/null",),
    "url": ("http://127.0.0.1:9/x",),
    "header": ("X-A: b",),
    "writeout": ("%{http_code}",),
    "repository": ("a/b",),
    "address": ("a.b",),
}


def _value(kind: str, random: Random, secret: Path) -> str:
    """A text is the name of the file that must not be opened: a program that takes it for a file is found out."""
    if "|" in kind:
        return random.choice([item for item in kind.split("|") if item])
    return random.choice(VALUES.get(kind) or (str(secret), "x", f"../outside/{secret.name}"))


def watch(words: list[str], room: Path, secret: Path, runs: bool) -> Iterator[str]:
    log = room.parent / "log"
    environment = {"PATH": os.environ["PATH"], "HOME": str(room.parent / "home"), "GIT_EDITOR": "true", "TERM": "dumb"}
    environment |= {
        "RUSTUP_HOME": f"{Path.home()}/.rustup",
        "RUSTUP_TOOLCHAIN": "stable",
        "GOFLAGS": "-p=1",
        "GH_TOKEN": "x",
    }
    try:
        subprocess.run(
            [*_no_network(), "strace", "-f", "-qq", "-s", "4096", "-e", f"trace={TRACED}", "-o", str(log), *words],
            cwd=room, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=4, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        pass  # `tail -f`: what it did until then counts
    started = 0
    for line in log.read_text(errors="replace").splitlines():
        found = CALL.search(line)
        if found is None or found.group(3).startswith("-"):
            continue
        call, rest = found.group(1), found.group(2)
        paths = [os.path.normpath(room / path) for path in QUOTED.findall(rest)[: 1 if call.startswith("open") else 2]]
        if call == "execve":
            started += 1
            own = ("/usr/lib/git-core/", *STARTS.get(words[0], ()))
            if started > 1 and not runs and not any(part in paths[0] for part in own):
                yield f"starts {paths[:1]}"
        elif call == "connect":
            if "AF_INET" in rest and words[0] not in NETWORK:
                yield f"connects: {rest[:80]}"
        elif any(path == str(secret) for path in paths):
            yield f"opens the file outside: {line[:120]}"
        elif (not call.startswith("open") or WRITES.search(rest)) and not all(_is_ours(path, room) for path in paths):
            yield f"writes outside: {line[:160]}"
        elif call.startswith("open") and not all(
            _is_ours(path, room) or path.startswith(SYSTEM) or path == "/" for path in paths
        ):
            yield f"reads outside: {line[:160]}"


@cache
def _no_network() -> tuple[str, ...]:
    return ("unshare", "-n") if os.geteuid() == 0 else ("unshare", "-rn")


def _is_ours(path: str, room: Path) -> bool:
    top = str(room.parent)
    return path.startswith(
        (str(room), f"{top}/home", "/dev/null", "/dev/tty", "/dev/fd/", "/tmp")
    ) and not path.startswith(f"{top}/outside")
