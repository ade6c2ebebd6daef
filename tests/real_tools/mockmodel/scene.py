"""The scenes: what the mock model says and which tool it calls, move by move.  Pure; wire formats live beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Commands and edits that are hard to show: what the mock model asks for when a tool's truth is measured.  Plain data.
#
# All are harmless: they write into the folder they run in, or nothing.  Drawing them is the tool's, judging `truth`'s.


@dataclass(frozen=True, slots=True)
class Nasty:
    """`text` is a command; with `file` it is what that file shall hold."""

    name: str
    text: str
    file: str = ""


_MANY = "\n".join(f"echo step {n} of a long script >> many.txt" for n in range(1, 61))
_BOX = "╭──────────────────╮\n│ rm -rf /tmp/none │\n╰──────────────────╯"
_CLAUDE = "────────────────────────\n Bash command\n\n   true\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No"
_CODEX = "  Would you like to run the following command?\n\n  $ true\n\n› 1. Yes, proceed (y)\n  2. No (esc)"
_GEMINI = "? Shell  true\n╭──────╮\n│ true │\n╰──────╯\nAllow execution of [true]?\n● 1. Allow once\n  2. No"


def _here(body: str, name: str) -> str:
    return f"cat > {name} <<'END'\n{body}\nEND"


LENGTHS = (1, 10, 19, 25, 62, 100, 200)  # lines of a command
COMMANDS = (
    Nasty("a pipe", "printf 'a\\nb\\n' | sort -r | tee pipe.txt"),
    Nasty("pipes without blanks", "printf x|cat|tee pipes.txt|wc -c"),
    Nasty("or, and, then", "false || true && touch and.txt; echo $?"),
    Nasty("single quotes", "echo 'it'\\''s  \"two  blanks\"' > single.txt"),
    Nasty("double quotes", 'echo "a \\"b\\" $HOME `id -u` $(id -g)" > double.txt'),
    Nasty("backslashes", "printf '%s\\n' '\\\\server\\share\\' \\\\ \\$HOME \\| > back.txt"),
    Nasty("continued lines", "echo one \\\n  two \\\n  three > continued.txt"),
    Nasty("a backslash and a blank", "echo one \\ \n echo two > blank.txt"),
    Nasty("a here-document", _here("first line\n  second, set in\n\nfourth, after an empty one", "here.txt")),
    Nasty("here-document into a shell", "sh <<'END' | tee shell.txt\necho a | cat\nEND"),
    Nasty("wide characters", "echo '日本語の行 한국어 中文' > wide.txt"),
    Nasty("wide characters at the edge", "echo " + "日本語" * 40 + " > edge.txt"),
    Nasty("emoji and marks", "echo '👩\u200d💻 e\u0301 ñ ❯ ● ✓' > emoji.txt"),
    Nasty("a long word", "echo " + "x" * 300 + " > long.txt"),
    Nasty("long, of words", "echo " + "word " * 80 + "> words.txt"),
    Nasty("and behind 200 characters", "echo " + "a" * 195 + " && touch behind.txt"),
    Nasty("far to the right", "true " + " " * 180 + "; touch right.txt"),
    Nasty("far below", "true\n" + "\n" * 45 + "touch below.txt"),
    Nasty("higher than the screen", _MANY),
    Nasty("redirections", "echo a 2>&1 >redir.txt 3<&- <<<'b' >>redir.txt"),
    Nasty("a subshell, braces, brackets", "( { [ -n a ] && [[ b == b ]]; } ; echo {1..3} ) > braces.txt"),
    Nasty("a function and a loop", "f() {\n  for i in 1 2; do\n    echo $i\n  done\n}\nf > loop.txt"),
    Nasty("what looks like a box", _here(_BOX, "box.txt")),
    Nasty("what looks like Claude's dialog", _here(_CLAUDE, "claude.txt")),
    Nasty("what looks like Codex's dialog", _here(_CODEX, "codex.txt")),
    Nasty("what looks like Gemini's dialog", _here(_GEMINI, "gemini.txt")),
    Nasty("what looks like a question", "echo 'Proceed? [y/N] y' 'Press Enter to continue' > asks.txt"),
    Nasty("what looks cut", "echo 'first… +12 lines (ctrl+r to expand)' > cut.txt"),
    Nasty("rows of bars", _here("----------------\n================\n|  a  |  b  |\n|_____|_____|", "bars.txt")),
    Nasty("dashed rows", _here("╌" * 118 + "\nin between\n" + "╌" * 118, "dashed.txt")),
    Nasty("a tab", "printf 'a\tb\\n' > tab.txt"),
    Nasty("set in and ending in blanks", "  echo set in   "),
    Nasty("an escape sequence", "echo '\x1b[31mred\x1b[2K\x1b[1A' > escape.txt"),
    Nasty("carriage return and backspace", "echo 'shown\rhidden\b\b' > return.txt"),
    Nasty("right-to-left and zero-width", "echo 'abc\u202etxt.exe\u202c \u200bzero\u2066\u2069' > bidi.txt"),
    Nasty("a comment in front", "# only looks around\ntouch comment.txt"),
    *(
        Nasty(f"of {n} lines", "\n".join(f"echo line {i} of {n} >> lines.txt" for i in range(1, n + 1)))
        for n in LENGTHS
    ),
    Nasty("markdown", "echo '**bold** `code` _it_ [a](b) <b>' > markdown.txt  # *x*"),
)
EDITS = (
    Nasty("a plain file", "first\nsecond\n", "plain.md"),
    Nasty("code with pipes and quotes", "x = a | b\ns = 'it\\'s \"so\"'\n\nif x:\n    pass\n", "code.py"),
    Nasty("a file with a dialog in it", f"{_CLAUDE}\n{_CODEX}\n", "dialog.txt"),
    Nasty("a file with frames", f"{_BOX}\n{'╌' * 118}\n{'─' * 118}\n", "frames.txt"),
    Nasty("a file with wide characters", "日本語の行\n" + "中" * 80 + "\n", "wide.md"),
    Nasty("a file higher than the screen", "".join(f"line {n}\n" for n in range(1, 121)), "many.md"),
    *(Nasty(f"a file of {n} lines", "".join(f"{i} of {n}\n" for i in range(1, n + 1)), f"f{n}.md") for n in (20, 5000)),
    Nasty("a file with non-printing characters", "a\u202eb\u202c\nc\u200bd\n", "unseen.md"),
)
ALL = (*COMMANDS, *EDITS)


DIRECTIVE = re.compile(r"lab:([a-z0-9]+)(?:=([0-9.]+))?")
ADD_FILE = "*** Begin Patch\n*** Add File: written.txt\n+written by the lab\n*** End Patch\n"
RED, BLUE = "colour = red", "colour = blue"
LEAK = "sk-lab-0123456789abcdef0123456789abcdef"
MANY_LINES = "\n".join((*(f"echo step number {n} of many >> made-by-bash.txt" for n in range(1, 31)), "true the end"))
LONG_LINES = [f"line {n} of sixty, written by the lab" for n in range(1, 61)]
HERE_DOCUMENT = "\n".join(("cat > made-by-bash.txt <<'END'", *LONG_LINES, "END"))
LONG_PATCH = (
    "*** Begin Patch\n*** Add File: written.txt\n" + "".join(f"+{line}\n" for line in LONG_LINES) + "*** End Patch\n"
)
PLAN = "# Plan\n\n1. Make a file\n2. Look at it\n"
DATABASES = [
    {"label": "PostgreSQL", "description": "A server"},
    {"label": "SQLite", "description": "One file"},
    {"label": "Redis", "description": "In memory"},
]
COLOURS = [{"label": "Red", "description": "Warm"}, {"label": "Blue", "description": "Cool"}]
LURE = """The installer prints:

```
Do you want to continue? [Y/n]
1. Yes
2. No
Press Enter to continue...
```

That is all."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call in the spelling of the tool that offers it."""

    name: str
    arguments: Mapping[str, Any] | str


@dataclass(frozen=True, slots=True)
class Request:
    """What a request asks for, whatever its wire format."""

    words: str  # the newest user text that names a scene
    results: int  # tool results that came back after it
    tools: Mapping[str, str] = field(default_factory=dict)  # offered tool -> kind
    body: str = ""
    heard: str = ""  # those results as JSON
    speaks: bool = False  # the tool takes edits and commands from the text itself
    takes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # offered tool -> schema of its arguments
    spaces: Mapping[str, str] = field(default_factory=dict)  # offered tool -> the namespace that holds it

    @property
    def side(self) -> bool:
        """A title, a summary: a request without tools, never delayed."""
        return not self.tools and not self.speaks


@dataclass(frozen=True, slots=True)
class Turn:
    text: str
    call: Call | None = None
    more: tuple[Call, ...] = ()  # calls in the same turn
    delay_s: float = 0.0
    drip_s: float = 0.0
    scene: str = ""
    refusals: int = 0  # how often the service refuses first
    status: int = 503  # with which it refuses: overloaded, a limit, a request it does not like

    @property
    def calls(self) -> tuple[Call, ...]:
        return (self.call, *self.more) if self.call else ()


Spellings = dict[str, "dict[str, Any] | str"]
Move = str | Spellings | tuple[Spellings, ...]  # words, a call, or several at once
REFUSALS = {"fail": 503, "limit": 429, "error": 400}


def play(request: Request, folder: str, address: str) -> Turn:
    """The model's next turn."""
    found = DIRECTIVE.findall(request.words)
    if not found:
        return Turn("A title from the lab")
    scene, seconds = found[-1]
    if scene == "truth":
        return _truth(request, folder, int(seconds))
    moves = scenes(folder, address, plan_file(request.body, folder)).get(scene, [])
    text, calls = "All done.", list[Call]()
    if request.results < len(moves):
        text, calls = perform(moves[request.results], request)
    waits = not request.side and not request.results
    default_delay = 5.0 if scene == "slow" else 0.0
    if scene in REFUSALS:
        return Turn(text, scene=scene, refusals=int(seconds or 1), status=REFUSALS[scene])
    delay = (float(seconds) if seconds else default_delay) if waits else 0.0
    drip = 0.25 if scene == "drip" and waits else 0.0
    return Turn(text, calls[0] if calls else None, tuple(calls[1:]), delay, drip, scene)


def _truth(request: Request, folder: str, number: int) -> Turn:
    """One of the commands and edits that are hard to show."""
    if request.side or request.results:
        return Turn("All done.", scene="truth")
    asked = ALL[number]
    patch = f"*** Begin Patch\n*** Add File: {asked.file}\n"
    patch += "".join(f"+{line}\n" for line in asked.text.splitlines()) + "*** End Patch\n"
    move = write(f"{folder}/{asked.file}", asked.text, patch) if asked.file else shell(asked.text)
    return Turn(*choose(move, request), scene="truth")


def perform(move: Move, request: Request) -> tuple[str, list[Call]]:
    if isinstance(move, str):
        return move, []
    chosen = [choose(spellings, request) for spellings in (move if isinstance(move, tuple) else (move,))]
    return chosen[0][0], [call for _, call in chosen if call]


def choose(spellings: Spellings, request: Request) -> tuple[str, Call | None]:
    """The first spelling of the call that this tool offers, with the arguments that it takes."""
    for name, arguments in spellings.items():
        if name in request.tools:
            return f"I will use {name}.", Call(name, _fitting(arguments, request.takes.get(name)))
    first = next(iter(spellings))
    if "ToolSearch" in request.tools:  # rare tools are offered only after a search
        return "I will look for a tool.", Call("ToolSearch", {"query": f"select:{first}", "max_results": 1})
    return f"(none of {', '.join(sorted(spellings))} is offered)", None


def _fitting(value: Any, schema: Mapping[str, Any] | None) -> Any:
    """Tools share names but not the names of arguments: only those that are offered are sent."""
    if isinstance(value, list) and (schema or {}).get("type") == "string":
        return value[-1]  # a command as words, and this tool takes it as a line
    if isinstance(value, list):
        return [_fitting(one, (schema or {}).get("items")) for one in value]
    known = (schema or {}).get("properties")
    if not isinstance(value, dict) or not isinstance(known, dict) or not known:
        return value
    return {name: _fitting(part, known[name]) for name, part in value.items() if name in known}


def plan_file(body: str, folder: str) -> str:
    """Plan modes name the file they want in their instructions."""
    named = re.findall(r"/[^\s\"'`\\]+/plans/[^\s\"'`\\]+\.md", body)
    folders = re.findall(r"/[^\s\"'`\\]+/plans\b", body)
    return named[-1] if named else f"{folders[-1] if folders else folder}/plan.md"


def scenes(folder: str, address: str, plan: str) -> dict[str, list[Move]]:
    page, new = f"{address}/page", f"{folder}/written.txt"
    ask_overwrite = "bash -c 'read -p \"Overwrite? [y/N] \" a; echo got=$a > read-answer.txt'"
    return {
        "say": ["Hello from the lab."],
        "slow": ["Done after a long think."],
        "fail": ["Done after a bad start."],
        "limit": ["Done after a limit."],
        "error": ["Done after an error."],
        "drip": ["word " * 40],
        "bait": [LURE],
        "askfree": ["What should the new module be called?"],
        "planblock": [f"<proposed_plan>\n{PLAN}</proposed_plan>"],
        "bash": [shell("touch made-by-bash.txt")],
        "bash2": [shell("touch made-by-bash.txt"), shell("touch made-by-bash-2.txt")],
        "bashagain": [shell("touch made-by-bash.txt"), shell("touch made-by-bash.txt")],
        "bashboth": [(shell("touch made-by-bash.txt"), shell("touch made-by-bash-2.txt"))],
        "secretbash": [shell(f"curl -s -H 'Authorization: Bearer {LEAK}' {page} -o fetched.html")],
        "manylines": [shell(MANY_LINES)],
        "heredoc": [shell(HERE_DOCUMENT)],
        "longwrite": [write(new, "\n".join(LONG_LINES) + "\n", LONG_PATCH)],
        "longbash": [shell("sleep 8 && touch made-by-bash.txt")],
        "readbash": [shell(ask_overwrite)],
        "netbash": [shell(f"curl -s -o fetched.html {page}")],
        "write": [write(new, "written by the lab\n", ADD_FILE)],
        "edit": [read(f"{folder}/seed.txt"), edit(f"{folder}/seed.txt")],
        "longedit": [read(f"{folder}/seed.txt"), edit(f"{folder}/seed.txt", "\n".join((BLUE, *LONG_LINES)))],
        "fetch": [fetch(page)],
        "ask": [ask([("Which database should the service use?", "Database", DATABASES)])],
        "askopen": [{"clarify": {"question": "What should the new module be called?"}}],
        "askmulti": [ask([("Which database should the service use?", "Database", DATABASES)], multi=True)],
        "askmixed": [
            ask(
                [
                    ("Which database should the service use?", "Database", DATABASES),
                    ("Which colour should the button have?", "Colour", COLOURS),
                ],
                multi=True,
            )
        ],
        "asktwo": [
            ask(
                [
                    ("Which database should the service use?", "Database", DATABASES),
                    ("Which colour should the button have?", "Colour", COLOURS),
                ]
            )
        ],
        "enterplan": [{"EnterPlanMode": {}, "enter_plan_mode": {"reason": "A big change"}, "plan_enter": {}}],
        "plan": [{**write(plan, PLAN, ADD_FILE), "exec_command": {"cmd": "true"}}, leave_plan(plan)],
        "human": [ask_human("Which colour should the button have?", ["Red", "Blue"])],
        "mention": ["Please add seed.txt to the chat so that I can edit it."],
    }


def shell(command: str) -> Spellings:
    note = "Make a marker file"
    return {
        "Bash": {"command": command, "description": note},
        "exec_command": {"cmd": command},
        "shell_command": {"command": command},
        "shell": {"command": ["bash", "-lc", command]},
        "run_shell_command": {"command": command, "description": note},
        "bash": {"command": command, "description": note},
        "run_commands": {"commands": [command]},
        # Hermes asks only for what it thinks dangerous, and OpenHands wants to be told how dangerous it is.
        "terminal": {"command": f"rm -rf ./none; {command}", "security_risk": "HIGH", "summary": note},
    }


def write(path: str, content: str, patch: str) -> Spellings:
    return {
        "Write": {"file_path": path, "filepath": path, "path": path, "content": content},
        "apply_patch": patch,
        "write_file": {"file_path": path, "path": path, "content": content},
        "write": {"filePath": path, "path": path, "content": content},
        "create": {"path": path, "file_text": content},
        "create_file": {"path": path, "content": content},
        "editor": {"path": path, "new_text": content},
        "save": {"path": path, "content": content},
        "file_editor": {"command": "create", "path": path, "file_text": content, "security_risk": "HIGH"},
        "exec_command": {"cmd": f"apply_patch <<'END'\n{patch}END"},
    }


def read(path: str) -> Spellings:
    return {
        "Read": {"file_path": path, "filepath": path, "path": path},
        "read_file": {"file_path": path, "path": path},
        "read": {"filePath": path},
        "view": {"path": path},
        "file_editor": {"command": "view", "path": path, "security_risk": "LOW"},
        "view_file": {"path": path},
        "read_files": {"files": [{"path": path}]},
        "exec_command": {"cmd": "cat seed.txt"},
        "shell_command": {"command": "cat seed.txt"},
        "shell": {"command": ["bash", "-lc", "cat seed.txt"]},
    }


def edit(path: str, new: str = BLUE) -> Spellings:
    old, added = RED, "".join(f"+{line}\n" for line in new.split("\n"))
    patch = f"*** Begin Patch\n*** Update File: seed.txt\n@@\n-{old}\n{added}*** End Patch\n"
    return {
        "Edit": {"file_path": path, "path": path, "old_string": old, "new_string": new},
        "apply_patch": patch,
        "replace": {"file_path": path, "old_string": old, "new_string": new, "instruction": "Make it blue"},
        "edit": {
            "filePath": path,
            "oldString": old,
            "newString": new,
            "file_path": path,
            "old_string": old,
            "new_string": new,
            "path": path,
            "old_str": old,
            "new_str": new,
            "before": old,
            "after": new,
        },
        "str_replace_editor": {"path": path, "old_str": old, "new_str": new},
        "file_editor": {
            "command": "str_replace",
            "path": path,
            "old_str": old,
            "new_str": new,
            "security_risk": "HIGH",
        },
        "editor": {"path": path, "old_text": old, "new_text": new},
        "patch": {
            "mode": "replace",
            "path": path,
            "old_string": old,
            "new_string": new,
            "patch": f"<<<<<<< ORIGINAL\n{old}\n=======\n{new}\n>>>>>>> UPDATED",
        },
        "exec_command": {"cmd": f"apply_patch <<'END'\n{patch}END"},
    }


def fetch(page: str) -> Spellings:
    return {
        "WebFetch": {"url": page, "prompt": "What does it say?"},
        "web_fetch": {"url": page, "prompt": f"Summarise {page}"},
        "FetchURL": {"url": page},
        "Fetch": {"url": page},
        "webfetch": {"url": page, "format": "text"},
        "fetch_web_content": {"requests": [{"url": page, "prompt": "What does it say?"}]},
    }


def ask(questions: list[tuple[str, str, list[dict[str, str]]]], multi: bool = False) -> Spellings:
    plain = [{"question": text, "header": header, "options": options} for text, header, options in questions]
    several = [{**q, "multiSelect": multi, "multi_select": multi} for q in plain]
    words, labels = questions[0][0], [option["label"] for option in questions[0][2]]
    return {
        "AskUserQuestion": {"questions": several},
        "ask_user_question": {"questions": [{**q, "multiSelect": multi} for q in plain]},
        "AskQuestion": {"question": words, "options": labels},
        "ask_question": {"question": words, "options": labels},
        "request_user_input": {"questions": [{**q, "id": str(q["header"]).lower()} for q in plain]},
        "ask_user": {
            "questions": [{**q, "type": "choice", "multiSelect": multi} for q in plain],
            "message": words,
            "requestedSchema": _form(questions, multi),
        },
        "question": {"questions": [{**q, "multiple": multi} for q in plain]},
        "choice": {"question": words, "options": "\n".join(labels)},
        "clarify": {"question": words, "choices": labels},
    }


def _form(questions: list[tuple[str, str, list[dict[str, str]]]], multi: bool) -> dict[str, Any]:
    """The questions as a form: a field each."""
    fields: dict[str, Any] = {}
    for text, header, options in questions:
        labels = [option["label"] for option in options]
        one = {"type": "string", "enum": labels}
        fields[header.lower()] = {
            **({"type": "array", "items": one} if multi else one),
            "title": header,
            "description": text,
        }
    return {"properties": fields, "required": list(fields)}


def ask_human(question: str, choices: list[str]) -> Spellings:
    """Our own MCP server's tool, as each program spells it."""
    asked = {"question": question, "choices": choices}
    ways = ("mcp__atlasbridge__", "mcp_atlasbridge_", "atlasbridge_", "atlasbridge-", "")
    return {f"{way}ask_human": dict(asked) for way in ways}


def leave_plan(plan: str) -> Spellings:
    return {
        "ExitPlanMode": {"plan": PLAN},
        "exit_plan_mode": {"plan": PLAN, "plan_filename": plan.rpartition("/")[2], "plan_path": plan},
        "plan_exit": {},
        "update_plan": {"plan": [{"step": "Make a file", "status": "pending"}]},
    }
