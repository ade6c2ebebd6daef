"""Random command lines: grown from a grammar around commands that a policy allows, then damaged."""

from __future__ import annotations

from random import Random

ALLOWED = (
    "ls",
    "ls -la src",
    "git status",
    "git status --short",
    "git log --oneline",
    "git diff HEAD",
    "npm run test",
    "npm run test:unit --silent",
    "cat a.txt",
    "echo hello",
    "grep -rn x src",
    "find src -name x",
    "true",
    "make test",
    "printf x",
)
OTHERS = ("reboot", "rm -rf x", "evil", "curl x", "sh", "python x", "npm install", "git push", "kill 1", "./ls", "cd x")
NASTY = (
    *(
        ";",
        "&",
        "|",
        "&&",
        "||",
        "\n",
        "$(",
        ")",
        "`",
        "(",
        "{",
        "}",
        "<",
        ">",
        ">>",
        "2>",
        "&>",
        "<<",
        "<<<",
        "<(",
        ">(",
    ),
    *(
        '"',
        "'",
        "\\",
        "\\\n",
        "$",
        "${",
        "$'",
        '$"',
        "#",
        " #",
        "!",
        "~",
        "*",
        "?",
        "[",
        "]",
        "=",
        "x=",
        "X=1 ",
        "%",
        "^",
        "@",
    ),
    *(
        " ",
        "\t",
        "\r",
        "\x0b",
        "\x0c",
        "\x01",
        "\x7f",
        "\u00a0",
        "\u200b",
        "\u2028",
        "\u0456",
        "é",
        ",",
        "..",
        "{a,b}",
        "{1..3}",
    ),
    *(
        "$x",
        "${x}",
        "$((1))",
        "$IFS",
        "$@",
        "*.c",
        "if ",
        "then ",
        "fi",
        "for x in a; do ",
        "done",
        "case x in x) ",
        "esac",
        "!",
    ),
    *(
        "function f ",
        "f() ",
        "time ",
        "coproc ",
        "[[ ",
        " ]]",
        "((",
        "))",
        "|&",
        ";;",
        "&!",
        "EOF",
        "<<EOF\n",
        "\nEOF\n",
        "evil",
    ),
    *(
        " evil ",
        ";evil",
        "|evil",
        "&evil",
        "\nevil\n",
        "$(evil)",
        "`evil`",
        "alias ls=evil\n",
        "ls() { evil; }\n",
        "select ",
        "-",
    ),
    *(
        "while ",
        "until ",
        "do ",
        "else ",
        "elif ",
        "in ",
        "exec ",
        "eval ",
        "command ",
        "builtin ",
        "env ",
        "trap ",
        "\\;",
        "$[1]",
    ),
)


class Grammar:
    def __init__(self, random: Random) -> None:
        self._random = random

    def line(self) -> str:
        made = self._list(self._random.randrange(3))
        return self._damaged(made) if self._random.random() < 0.45 else made

    def _pick(self, *items: str) -> str:
        return self._random.choice(items)

    def _list(self, depth: int) -> str:
        parts = [self._command(depth) for _ in range(self._random.choice((1, 1, 1, 2, 2, 3)))]
        out = parts[0]
        for part in parts[1:]:
            out += self._pick(" && ", " || ", " | ", "; ", "\n", ";", "&&", "|", " & ", " |& ") + part
        return out

    def _command(self, depth: int) -> str:
        chance = self._random.random()
        if depth <= 0 or chance < 0.55:
            return self._simple()
        inner = self._list(depth - 1)
        if chance < 0.75:
            return self._wrapped(inner)
        return self._pick(
            f"({inner})",
            f"{{ {inner}; }}",
            f"! {inner}",
            f"if {inner}; then {self._simple()}; fi",
            f"if {self._simple()}; then {inner}; else {self._simple()}; fi",
            f"for x in a b; do {inner}; done",
            f"while {inner}; do {self._simple()}; done",
            f"case a in a) {inner};; esac",
            f"f() {{ {inner}; }}; f",
            f"echo $({inner})",
            f'echo "$({inner})"',
            f"cat <({inner})",
            f"time {inner}",
            f"cat <<EOF\n{inner}\nEOF",
            f"{inner} &",
        )

    def _wrapped(self, inner: str) -> str:
        quoted = "'" + inner.replace("'", "'\\''") + "'"
        return self._pick(
            f"sh -c {quoted}",
            f"bash -lc {quoted}",
            f"timeout 5 {inner}",
            f"nice -n 3 {inner}",
            f"env {inner}",
            f"command {inner}",
            f"env X=1 {inner}",
            f"sudo {inner}",
            f"xargs {inner}",
            f"eval {quoted}",
            f"find . -exec {inner} ;",
            f"timeout -k 1 5 {inner}",
            f"stdbuf -oL {inner}",
        )

    def _simple(self) -> str:
        base = self._random.choice(ALLOWED if self._random.random() < 0.95 else OTHERS)
        words = [self._respelled(word) for word in base.split(" ")]
        if self._random.random() < 0.15:
            words.insert(self._random.randrange(len(words) + 1), self._odd_word())
        blank = self._random.choice((" ", " ", " ", "  ", "\t", " \\\n"))
        return blank.join(words) + self._redirect()

    def _respelled(self, word: str) -> str:
        chance = self._random.random()
        if chance < 0.85:
            return word
        place = self._random.randrange(len(word) + 1)
        return self._pick(
            f"'{word}'",
            f'"{word}"',
            word[:place] + "\\" + word[place:],
            word[:place] + "''" + word[place:],
            word[:place] + '""' + word[place:],
            word[:place] + "\\\n" + word[place:],
            f"$'{word}'",
            f"/bin/{word}",
            f"/tmp/{word}",
            word[:place] + "$x" + word[place:],
        )

    def _odd_word(self) -> str:
        return self._pick(
            *("$x", "*", "'a b'", '"a;b"', "a\\;b", "--exec=evil", "-c", "{a,b}", "~", "$(evil)", "'$(evil)'", "#x")
        )

    def _redirect(self) -> str:
        if self._random.random() < 0.85:
            return ""
        return " " + self._pick(
            "2>&1",
            "> /dev/null",
            "> out",
            ">> out",
            "2>/dev/null",
            "< /dev/null",
            "&> out",
            ">& out",
            "<<< x",
            "2>&1 > out",
            ">|out",
        )

    def _damaged(self, line: str) -> str:
        for _ in range(self._random.choice((1, 1, 1, 2, 3))):
            place = self._random.randrange(len(line) + 1)
            if self._random.random() < 0.2 and line:
                line = line[: max(0, place - 1)] + line[place:]
            else:
                line = line[:place] + self._random.choice(NASTY) + line[place:]
        return line
