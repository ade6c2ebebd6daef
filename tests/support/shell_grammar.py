"""Random command lines: grown from a grammar around commands that a policy allows, then damaged.

Three kinds: whole lines with structure, lines with one broken or foreign piece in them, and words that are put together
from pieces that shells are known to read in different ways.
"""

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
    "printf %n PATH",
    "printf '%s y' x",
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


# Pieces of one word: quotes, dollars, continuations, expansions.  Most of them are a doubt, some pairs are not.
PIECES = (
    *(
        "$",
        "\\\n",
        "\\",
        "(",
        ")",
        "{",
        "}",
        "'",
        '"',
        "`",
        "evil",
        "(evil)",
        "{evil,x}",
        "$(evil)",
        "`evil`",
        "=",
        "+",
    ),
    *(
        "^",
        "~",
        "#",
        "!",
        ":",
        "%",
        "[",
        "]",
        "*",
        "?",
        "-",
        "--",
        ",",
        "|",
        "&",
        ";",
        "<",
        ">",
        " ",
        "\t",
        "\n",
        "@",
        "/",
    ),
    *(
        "a",
        "b",
        "ls",
        "0",
        "1",
        "$=x",
        "$+x",
        "$^x",
        "$~x",
        "${",
        "$((",
        "))",
        "$[",
        "$'",
        '$"',
        "''",
        '""',
        "\\'",
        '\\"',
    ),
    *(
        "\\$",
        "\\`",
        "\\\\",
        "\\ ",
        "é",
        "\u4e2d",
        "\U0001f600",
        "\r",
        "\x01",
        "\x7f",
        "\u3000",
        "\u2028",
        "\ufeff",
        "\udc80",
    ),
    *("=evil", "=ls", "~evil", "~+", "%1", "!!", "!$", "{1..2}", "@(a|b)", "+(a)", "a(b)", "a[1]", "(N)", "(e:evil:)"),
)
# Statements before or after an allowed one, which may give its words another meaning.
AROUND = (
    "alias ls=evil",
    "ls() { evil; }",
    "function git { evil; }",
    "set -- evil; $1",
    'set -- evil; "$@"',
    "a=(evil x); ${a[0]}",
    "a=(evil); $a",
    "typeset -a a; a+=(evil); $a",
    "PATH=/tmp",
    "export X=1",
    "hash -p /tmp/x ls",
    "cat <<EOF\n$(evil)\nEOF",
    "cat <<'EOF'\n$(evil)\nEOF",
    "cat <<-EOF\n\t`evil`\n\tEOF",
    "cat <<\\EOF\nx\nEOF\nevil",
    'cat << E"O"F\nx\nEOF\nevil',
    "cat <<E\\\nOF\nevil\nEOF",
    "cat <<<$(evil)",
    "# $(evil)",
    "#\\\nevil",
    ": ' #\n' evil",
    "((x=1)); evil",
    "(( `evil` ))",
    "[[ a =~ $(evil) ]]",
    "let x=1",
    "{evil,x}",
    "~/evil",
    "coproc evil",
    "repeat 2 evil",
    "noglob evil",
    "trap evil EXIT",
    "emulate sh -c evil",
    "setopt aliases; alias -g a=evil",
    "exec 3>/dev/null",
    "! evil",
    "true & evil",
)


class Grammar:
    def __init__(self, random: Random) -> None:
        self._random = random

    def line(self) -> str:
        kind = self._random.random()
        if kind < 0.35:
            return self._pieced()
        if kind < 0.45:
            return self._surrounded()
        made = self._list(self._random.randrange(3))
        return self._damaged(made) if self._random.random() < 0.45 else made

    def _pieced(self) -> str:
        """An allowed command with a word or two from pieces, quoted as a whole or not."""
        words = self._random.choice(ALLOWED).split(" ")
        for _ in range(self._random.choice((1, 1, 2))):
            made = "".join(self._random.choice(PIECES) for _ in range(self._random.choice((1, 2, 2, 3, 3, 4, 6))))
            quote = self._random.choice(("", "", '"', '"', "'"))
            words.insert(self._random.randrange(1, len(words) + 1), f"{quote}{made}{quote}")
        if self._random.random() < 0.02:
            words.append("x" * self._random.choice((1000, 5000, 20_000)))
        return self._random.choice((" ", " ", "\t", " \\\n", "\\\n ")).join(words)

    def _surrounded(self) -> str:
        parts = [self._simple(), self._random.choice(AROUND), self._simple()][self._random.randrange(2) :]
        return self._random.choice(("\n", "; ", " && ", "\\\n", "\r\n", " ;\\\n")).join(parts)

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
