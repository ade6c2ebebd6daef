"""What is known of programs, as data: which words make a harmless one run or write something else, and which run others.

A wildcard of an `allow` rule never takes such a word; a person who wants it writes it out.  A program that is not listed
is taken as it is: then the rule's author alone knows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from re import Pattern, compile  # noqa: A004

from atlasbridge.core.values import frozen

ANY = "ANY"  # every word that a wildcard takes: the program runs what it is given

# `-x` also inside a bundle, `--long` also abbreviated, `^…` a regular expression, `-word` of find as it stands
_DANGEROUS = {
    "find": "-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from",
    "fd": "-x -X --exec --exec-batch",
    "fdfind": "-x -X --exec --exec-batch",
    "rg": "--pre --hostname-bin --search-zip -z",
    "grep": "-f --file",
    "ag": "--pager --filename-pattern",
    "ls": "--hyperlink",
    "sort": "-o --output --compress-program -T --temporary-directory --files0-from",
    "uniq": "^[^-].*",
    "tee": ANY,
    "sed": ANY,
    "awk": ANY,
    "gawk": ANY,
    "mawk": ANY,
    "cat": "^/(etc/shadow|proc).*",
    "head": "",
    "tail": "--pid",
    "wc": "--files0-from",
    "du": "--files0-from -X --exclude-from",
    "diff": "--to-file --from-file",
    "date": "-s --set -f --file",
    "hostname": ANY,
    "file": "-C --compile -m --magic-file -f --files-from",
    "tree": "-o --fromfile -R",
    "less": "-o -O -k -K --lesskey-file --log-file ^\\+.*",
    "more": "^\\+.*",
    "man": "-P --pager -H --html -C --config-file -M --manpath -X -T --troff-device -p --preprocessor",
    "vim": ANY,
    "vi": ANY,
    "nvim": ANY,
    "view": ANY,
    "emacs": ANY,
    "nano": ANY,
    "ed": ANY,
    "ex": ANY,
    "git": "-c -C --git-dir --work-tree --exec-path --config-env --namespace --super-prefix --exec --upload-pack"
    " --receive-pack --output --ext-diff --textconv --open-files-in-pager --open-files -O --no-verify --template"
    " --separate-git-dir --server-option --config ^ext:: ^fd:: ^-u.*=.*",
    "git *": "^(config|submodule|filter-branch|filter-repo|bisect|difftool|mergetool|hook|daemon|instaweb|gc|svn|p4"
    "|web--browse|send-email|upload-pack|receive-pack|upload-archive|archive|bundle|credential.*|alias|maintenance"
    "|fast-import|fast-export|update-ref|update-index|symbolic-ref|replace|reflog|prune|clone|init|worktree|remote"
    "|lfs|flow|annex|-.*)$",
    "git clone": "-u -c -b ^.*::.*",
    "git fetch": "-u ^.*::.* ^\\+.*",
    "git pull": "-u -r --rebase ^.*::.* ^\\+.*",
    "git ls-remote": "-u ^.*::.*",
    "git push": "-f --force --force-with-lease --force-if-includes -d --delete --mirror --prune --all ^\\+.* ^:.*"
    " ^.*::.* --repo",
    "git rebase": "-x -i --interactive",
    "git grep": "-f",
    "git branch": "-D -d -M -m -f --delete --move --force --copy -C -c --edit-description --set-upstream-to",
    "git tag": "-d -f -F --delete --force",
    "git reset": "--hard --merge --keep",
    "git clean": ANY,
    "git checkout": "-f --force -- -B ^\\.$ ^.*/.*",
    "git restore": ANY,
    "git rm": ANY,
    "git stash": "^(drop|clear|pop|apply)$",
    "git log": "-L",
    "git diff": "--no-index",
    "git commit": "-F --file -t -c -C --amend",
    "git add": "-i -p -e --interactive --patch --edit --pathspec-from-file",
    "git apply": "--unsafe-paths --directory",
    "git remote": ANY,
    "git config": ANY,
    "git worktree": ANY,
    "git format-patch": "-o",
    "hg": "--config --cwd -R --repository",
    "svn": "--config-option --config-dir --editor-cmd --diff-cmd --diff3-cmd",
    "npm": "--prefix -C --script-shell --shell --node-options --userconfig --globalconfig --call -c --eval --global -g"
    " --registry --ignore-scripts=false --workspace -w --git --viewer --editor --init-module --cache --tmp",
    "npm *": "^(exec|x|explore|publish|unpublish|config|c|set|adduser|login|logout|token|owner|access|dist-tag|deprecate"
    "|edit|init|create|link|ln|pkg|run|run-script|install|i|ci|add|uninstall|rm|update|rebuild|-.*)$",
    "npx": ANY,
    "pnpm": "--prefix -C --dir --shell-mode -c --script-shell --config --global -g --filter -F --workspace-root -w",
    "pnpm *": "^(exec|dlx|publish|config|create|link|run|install|i|add|remove|-.*)$",
    "yarn": "--cwd --use-yarnrc --script-shell --modules-folder --cache-folder --registry",
    "yarn *": "^(exec|dlx|publish|config|create|link|node|run|add|remove|global|-.*)$",
    "bun": ANY,
    "deno": ANY,
    "pip": "-i --index-url --extra-index-url -r --requirement -e --editable -t --target --prefix --root -f --find-links"
    " --config-settings --python -c --constraint --log --proxy --trusted-host ^(git|hg|svn|bzr)\\+.* ^.*[:@/].*"
    " ^(config|download|uninstall)$",
    "uv": ANY,
    "pytest": "-p -c --config-file --rootdir --confcutdir -o --override-ini --import-mode --basetemp --pdb --pdbcls"
    " --trace --junitxml --junit-xml --log-file --pastebin --cache-clear --debug ^@.* --pyargs ^/.* ^(.*/)?\\.\\.(/.*)?$",
    "tox": "-c --conf --workdir --root -x --override",
    "nox": "-f --noxfile",
    "make": "-f --file --makefile -C --directory --eval -E -I --include-dir -o -W ^.*=.*",
    "gmake": "-f --file --makefile -C --directory --eval -E -I --include-dir ^.*=.*",
    "cmake": "-P -E -D -C --build --install -S -B --toolchain",
    "ninja": "-f -C -t",
    "cargo": "--config -C --manifest-path -Z --target-dir ^\\+.*",
    "cargo *": "^(run|r|install|publish|login|owner|yank|-.*)$",
    "go": "-exec -toolexec -C -overlay -modfile -o -ldflags -gcflags -asmflags -vettool -pkgdir -work",
    "go *": "^(run|generate|install|get|tool|env|-.*)$",
    "mvn": "-f --file -D -s --settings ^exec:.*",
    "gradle": "-b --build-file -p --project-dir -I --init-script -D -c",
    "tar": "-I -F -T -X -P -C -x -c -u -r -A --use-compress-program --checkpoint-action --to-command --info-script"
    " --new-volume-script --rmt-command --rsh-command --extract --create --append --update --delete --directory"
    " --files-from --absolute-names --transform --xform ^[^-]*[xcurAIF].*",
    "zip": ANY,
    "unzip": ANY,
    "7z": ANY,
    "rsync": ANY,
    "scp": ANY,
    "sftp": ANY,
    "ssh": ANY,
    "curl": "-o -O -K -T -F -d -x -E -X -u -c -b -H -w --output --output-dir --remote-name --remote-name-all --config"
    " --upload-file --form --form-string --data --data-ascii --data-binary --data-raw --data-urlencode --json --url-query"
    " --proxy --cert --request --user --cookie-jar --cookie --trace --trace-ascii --dump-header -D --stderr --libcurl"
    " --etag-save --hsts --alt-svc --engine --unix-socket --header --write-out --create-file-mode --next ^(file|scp|sftp"
    "|smb|telnet|dict|gopher|ldap|tftp)s?: ^@.*",
    "wget": ANY,
    "nc": ANY,
    "ncat": ANY,
    "socat": ANY,
    "telnet": ANY,
    "openssl": ANY,
    "gpg": ANY,
    "jq": "-f --from-file -L --library-path --rawfile --slurpfile --args --jsonargs",
    "yq": "-i --inplace --from-file -s --split-exp",
    "xmllint": "--output -o --shell",
    "cp": ANY,
    "mv": ANY,
    "ln": ANY,
    "rm": ANY,
    "rmdir": ANY,
    "dd": ANY,
    "install": ANY,
    "truncate": ANY,
    "shred": ANY,
    "chmod": ANY,
    "chown": ANY,
    "mkfs": ANY,
    "mount": ANY,
    "docker": ANY,
    "podman": ANY,
    "kubectl": "--kubeconfig --token --server -s --as --exec ^(exec|apply|delete|create|edit|replace|patch|run|cp|debug|drain"
    "|scale|set|label|annotate|config|plugin|proxy|port-forward|attach|auth)$",
    "helm": ANY,
    "terraform": "-chdir ^(apply|destroy|import|state|taint|console|init)$",
    "aws": "--endpoint-url --cli-input-json --cli-input-yaml --profile --ca-bundle",
    "gh": "^(api|auth|extension|alias|secret|config|codespace|ssh-key|gpg-key|repo|workflow|run|-.*)$ --hostname",
    "systemctl": "^(edit|link|start|stop|restart|enable|disable|mask|set-.*|import-environment|kill|isolate)$ -H --root",
    "crontab": ANY,
    "at": ANY,
    "kill": ANY,
    "pkill": ANY,
    "killall": ANY,
    "python": ANY,
    "node": ANY,
    "nodejs": ANY,
    "perl": ANY,
    "ruby": ANY,
    "php": ANY,
    "lua": ANY,
    "R": ANY,
    "Rscript": ANY,
    "java": ANY,
    "ghc": ANY,
    "tsx": ANY,
    "ts-node": ANY,
    "osascript": ANY,
    "powershell": ANY,
    "pwsh": ANY,
    "cmd": ANY,
    "gdb": ANY,
    "sqlite3": ANY,
    "psql": ANY,
    "mysql": ANY,
    "gcc": "-o -B -wrapper -specs --specs -fplugin -x ^@.*",
    "cc": "-o -B -wrapper -specs --specs -fplugin -x ^@.*",
    "clang": "-o -B -fplugin -Xclang ^@.*",
    "eslint": "-c --config --rulesdir --resolve-plugins-relative-to --fix --fix-dry-run -o --output-file --parser --plugin"
    " -f --format --cache-location",
    "prettier": "-w --write --config --plugin --plugin-search-dir",
    "tsc": "-p --project --outDir --outFile --build -b --init --plugins",
    "jest": "-c --config --rootDir --globalSetup --setupFiles --testEnvironment --runner --transform --reporters --resolver"
    " --outputFile --coverageDirectory",
    "vitest": "-c --config -r --root --dir --outputFile",
    "ruff": "--config --fix --unsafe-fixes -o --output-file ^(format|clean|server)$",
    "mypy": "--config-file --python-executable --install-types --custom-typeshed-dir --junit-xml",
    "black": "--config -c",
    # builtins of the shell that change what later words mean, or run what they are given
    "eval": ANY,
    "source": ANY,
    ".": ANY,
    "alias": ANY,
    "unalias": ANY,
    "trap": ANY,
    "hash": ANY,
    "enable": ANY,
    "set": ANY,
    "shopt": ANY,
    "setopt": ANY,
    "unset": ANY,
    "read": ANY,
    "mapfile": ANY,
    "readarray": ANY,
    "getopts": ANY,
    "bind": ANY,
    "complete": ANY,
    "compgen": ANY,
    "fc": ANY,
    "history": ANY,
    "let": ANY,
    "wait": "-p",
    "umask": ANY,
    "ulimit": ANY,
    "printf": "-v",
    "print": ANY,
    "test": "-v -R",
    "[": "-v -R",
    "zmodload": ANY,
    "autoload": ANY,
    "functions": ANY,
    "vared": ANY,
    "cd": "^[-+].*",
    "pushd": "",
}

SHELLS = frozenset("sh bash dash zsh ksh mksh ash fish csh tcsh rbash yash busybox".split())
INTERPRETERS = frozenset(
    "python node nodejs perl ruby php lua deno bun tsx ts-node osascript pwsh powershell Rscript tclsh expect awk gawk"
    " mawk guile jshell groovy scala julia elixir erl ghci swift rustc go irb ipython psql sqlite3 mysql gdb lldb vim vi"
    " nvim emacs ex ed sed make gmake xonsh nu elvish".split()
)

# Words after these are data for them: a denied program's name there is only a word.
INERT = frozenset(
    "echo printf cat ls dir grep egrep fgrep rg ag ack head tail wc sort uniq cut tr man which type whatis apropos info"
    " apt apt-get dnf yum pacman brew pip npm pnpm yarn cargo go git hg svn touch mkdir rmdir rm cp mv ln chmod chown stat file"
    " du df test [ cd pwd basename dirname diff cmp sleep true false date tee less more jq yq curl wget zip unzip gzip"
    " gunzip export declare local readonly typeset unset set shopt seq paste join fold fmt nl tac rev comm expand hexdump od"
    " xxd strings md5sum sha256sum sha1sum cksum base64 id whoami uname hostname ps top kill pkill pgrep killall docker podman"
    " kubectl helm gh hub code open xdg-open sed find fd fdfind tree read wait exit return : umask ulimit jobs fg bg"
    " dpkg rpm snap flatpak systemctl service journalctl crontab mail say logger notify-send tput stty pbcopy clear dd".split()
)


@frozen
class Wrapper:
    """A program that runs the one named after it.  `transparent`: it changes nothing that a rule cares about."""

    values: tuple[str, ...] = ()  # its options that take a word of their own
    skip: int = 0  # words of its own before the program
    transparent: bool = False


WRAPPERS = {
    "nice": Wrapper(("-n", "--adjustment"), transparent=True),
    "timeout": Wrapper(("-k", "--kill-after", "-s", "--signal"), skip=1, transparent=True),
    "gtimeout": Wrapper(("-k", "--kill-after", "-s", "--signal"), skip=1, transparent=True),
    "stdbuf": Wrapper(("-i", "-o", "-e", "--input", "--output", "--error"), transparent=True),
    "ionice": Wrapper(("-c", "-n", "--class", "--classdata"), transparent=True),
    "command": Wrapper(transparent=True),
    "builtin": Wrapper(transparent=True),
    "exec": Wrapper(("-a",), transparent=True),
    "env": Wrapper(("-u", "--unset", "-C", "--chdir", "-S", "--split-string"), transparent=True),
    "time": Wrapper(("-f", "--format", "-o", "--output"), transparent=True),
    "sudo": Wrapper(("-u", "--user", "-g", "--group", "-h", "--host", "-p", "--prompt", "-C", "-D", "-r", "-t", "-T", "-U")),
    "doas": Wrapper(("-u", "-C")),
    "nohup": Wrapper(),
    "xargs": Wrapper(("-a", "-d", "-E", "-I", "-L", "-n", "-P", "-s", "-i", "-l")),
    "setsid": Wrapper(),
    "flock": Wrapper(("-w", "-E", "--timeout"), skip=1),
    "watch": Wrapper(("-n", "--interval")),
    "parallel": Wrapper(("-j", "--jobs")),
}
# Of a transparent wrapper only these options are understood; any other means that a person is asked.
_PLAIN_OPTIONS = {
    "nice": r"-n|-n-?\d+|--adjustment(=-?\d+)?|-\d+|-?\d+",
    "timeout": r"-k|--kill-after|-s|--signal|--foreground|--preserve-status|-v|--verbose|--(kill-after|signal)=\w+|-[ks]\w+",
    "gtimeout": r"-k|-s|--foreground|--preserve-status",
    "stdbuf": r"-[ioe](L|0|\d+[KMG]?)?|--(input|output|error)=(L|0|\d+[KMG]?)",
    "ionice": r"-[cn]\d?|-t",
    "time": r"-p",
}


@lru_cache(maxsize=256)
def _plain_options(name: str) -> Pattern[str]:
    return compile(_PLAIN_OPTIONS.get(name, r"(?!)"))


def program_of(word: str) -> str:
    """A program is its last path component; versions of an interpreter are that interpreter."""
    name = word.rsplit("/", 1)[-1].lstrip("=")
    for base in ("python", "pypy", "perl", "ruby", "node", "php", "lua", "pip"):
        if name.startswith(base) and name[len(base) :].replace(".", "").isdigit():
            return "python" if base == "pypy" else base
    return {"pypy": "python", "pythonw": "python", "nodejs": "node", "bsdtar": "tar", "gtar": "tar", "gsed": "sed"}.get(
        name, name
    )


@lru_cache(maxsize=1024)
def _flags(key: str) -> tuple[str, ...]:
    return tuple(_DANGEROUS.get(key, "").split())


@lru_cache(maxsize=1024)
def _expression(source: str) -> Pattern[str]:
    return compile(source)


def dangerous_places(words: Sequence[str]) -> frozenset[int]:
    """Places of words that a wildcard must not have taken, because of them another thing would run or be written."""
    name = program_of(words[0])
    if name in WRAPPERS:
        return _places_of_wrapper(name, words)
    if name in SHELLS or _flags(name) == (ANY,):
        return _places_of_runner(name, words)
    return _places_of_flags(name, words)


def _places_of_flags(name: str, words: Sequence[str]) -> frozenset[int]:
    flags = list(_flags(name))
    command = next((place for place, word in enumerate(words[1:], 1) if not word.startswith("-")), 0)
    found: set[int] = set()
    if command:
        special = _flags(f"{name} {words[command]}")
        if special == (ANY,):
            found |= set(range(command, len(words)))
        else:
            flags += special
        if any(_is_flag(words[command], flag) for flag in _flags(f"{name} *")):
            found.add(command)
    for place, word in enumerate(words[1:], 1):
        if any(_is_flag(word, flag) for flag in flags):
            found.add(place)
    return frozenset(found)


def _places_of_wrapper(name: str, words: Sequence[str]) -> frozenset[int]:
    """Everything up to the program inside must be written out in the rule, and what is dangerous for that one."""
    start = 1
    while start < len(words) and (words[start].startswith("-") or "=" in words[start]):
        start += 2 if words[start] in WRAPPERS[name].values else 1
    start += WRAPPERS[name].skip
    everything = frozenset(range(1, len(words)))
    if name in _FED or start >= len(words):
        return everything
    return frozenset(range(1, start + 1)) | frozenset(start + place for place in dangerous_places(words[start:]))


_FED = frozenset({"xargs", "parallel", "watch"})  # what they run is not all in their words
_SCRIPT_RUNNERS = SHELLS | {"python", "node", "perl", "ruby", "php", "lua", "tsx", "ts-node", "Rscript"}


def _places_of_runner(name: str, words: Sequence[str]) -> frozenset[int]:
    """A script that the rule writes out takes words of its own, and `python -m pytest …` is pytest."""
    if name == "python" and len(words) > 2 and words[1] == "-m":
        return frozenset({1, 2}) | frozenset(place + 2 for place in dangerous_places(words[2:]))
    if name in _SCRIPT_RUNNERS and len(words) > 1 and words[1][:1] not in ("-", "+"):
        return frozenset({1})
    return frozenset(range(1, len(words)))


def _is_flag(word: str, flag: str) -> bool:
    if flag.startswith("^"):
        return bool(_expression(flag).match(word))
    if flag.startswith("--"):
        name = word.split("=", 1)[0]
        if flag == "--":
            return word == "--"
        return name.startswith("--") and len(name) > 2 and flag.startswith(name)
    if len(flag) == 2:
        return word.startswith("-") and not word.startswith("--") and flag[1] in word[1:]
    return word.lstrip("-").split("=", 1)[0] == flag.lstrip("-") if word.startswith("-") else word == flag


def unwrap(words: Sequence[str]) -> tuple[str, ...] | None:
    """The command inside a transparent wrapper whose options are all understood; None where there is none."""
    name = program_of(words[0])
    wrapper = WRAPPERS.get(name)
    if wrapper is None or not wrapper.transparent:
        return None
    place, skip = 1, wrapper.skip
    while place < len(words) and words[place].startswith("-"):
        if not _plain_options(name).fullmatch(words[place]):
            return None
        place += 2 if words[place] in wrapper.values else 1
    if name == "env" and place < len(words) and "=" in words[place]:
        return None
    inner = tuple(words[place + skip :])
    return inner if inner and not inner[0].startswith("-") else None
