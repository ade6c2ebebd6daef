"""Commands and edits that are hard to show: what the mock model asks for when a tool's truth is measured.  Plain data.

All are harmless: they write into the folder they run in, or nothing.  Drawing them is the tool's, judging `truth`'s.
"""

from __future__ import annotations

from dataclasses import dataclass


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
    Nasty("markdown", "echo '**bold** `code` _it_ [a](b) <b>' > markdown.txt  # *x*"),
)
EDITS = (
    Nasty("a plain file", "first\nsecond\n", "plain.md"),
    Nasty("code with pipes and quotes", "x = a | b\ns = 'it\\'s \"so\"'\n\nif x:\n    pass\n", "code.py"),
    Nasty("a file with a dialog in it", f"{_CLAUDE}\n{_CODEX}\n", "dialog.txt"),
    Nasty("a file with frames", f"{_BOX}\n{'╌' * 118}\n{'─' * 118}\n", "frames.txt"),
    Nasty("a file with wide characters", "日本語の行\n" + "中" * 80 + "\n", "wide.md"),
    Nasty("a file higher than the screen", "".join(f"line {n}\n" for n in range(1, 121)), "many.md"),
    Nasty("a file with non-printing characters", "a\u202eb\u202c\nc\u200bd\n", "unseen.md"),
)
ALL = (*COMMANDS, *EDITS)
