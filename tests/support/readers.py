"""Real programs that read answers and write down exactly what they got, as JSON, one line each.

bash's read, Python's input with and without readline, Node's readline, bash's select, and a menu driven by arrow keys.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path

_PYTHON = """
import json, os, sys
{extra}
number = 0
while True:
    got = input(f"Question {{number}} of py: what now? ")
    with open({file!r}, "a") as out:
        out.write(json.dumps(got) + "\\n")
    number += 1
"""
_BASH = r"""
number=0
while IFS= read -r {options} -p "Question $number of sh: what now? " got; do
  printf '%s' "$got" | {python} -c 'import json,sys; print(json.dumps(sys.stdin.buffer.read().decode()))' >>{file}
  number=$((number+1))
done
"""
_NODE = """
const fs = require("fs"), readline = require("readline");
const face = readline.createInterface({ input: process.stdin, output: process.stdout });
let number = 0;
const ask = () => face.question(`Question ${number} of js: what now? `, (got) => {
  fs.appendFileSync(%s, JSON.stringify(got) + "\\n"); number++; ask();
});
ask();
"""
_SELECT = r"""
number=0
while true; do
  PS3="Your choice ($number)? "; number=$((number+1))
  select got in "Keep it" "Throw it away" "Ask me later"; do
    printf '["%s","%s"]\n' "$REPLY" "$got" >>{file}; break
  done || exit 0
done
"""
_ARROWS = """
import json, os, sys, termios, tty
CHOICES = ["Keep it", "Throw it away", "Ask me later"]
before = termios.tcgetattr(0)
tty.setraw(0)
at, keys, number = 0, "", 0
def draw():
    out = f"\\x1b[2J\\x1b[HWhat shall be done with it ({number})?\\r\\n\\r\\n"
    for row, label in enumerate(CHOICES):
        out += f"\\x1b[7m> {label}\\x1b[0m\\r\\n" if row == at else f"  {label}\\r\\n"
    os.write(1, (out + "\\r\\n(arrow keys and Enter)").encode())
draw()
while True:
    key = os.read(0, 1).decode("latin-1")
    keys += key
    if keys.endswith("\\x1b[A"): at = max(0, at - 1)
    elif keys.endswith("\\x1b[B"): at = min(len(CHOICES) - 1, at + 1)
    elif key == "\\r":
        with open(%r, "a") as out:
            out.write(json.dumps([CHOICES[at], keys]) + "\\n")
        at, keys, number = 0, "", number + 1
    elif key == "\\x03": break
    draw()
termios.tcsetattr(0, termios.TCSADRAIN, before)
"""


def read_line_programs(file: Path) -> dict[str, tuple[str, ...]]:
    """Programs that ask `Question N of …` and read a line."""
    name = str(file)
    bash = {
        kind: _BASH.format(options=options, file=shlex.quote(name), python=shlex.quote(sys.executable))
        for kind, options in (("bash", ""), ("bash with readline", "-e"))
    }
    programs: dict[str, tuple[str, ...]] = {kind: ("bash", "--norc", "-c", script) for kind, script in bash.items()}
    for kind, extra in (("python", "sys.modules['readline'] = None"), ("python with readline", "import readline")):
        programs[kind] = (sys.executable, "-c", _PYTHON.format(file=name, extra=extra))
    if shutil.which("node"):
        programs["node"] = ("node", "-e", _NODE % json.dumps(name))
    return programs


def select_menu(file: Path) -> tuple[str, ...]:
    return ("bash", "--norc", "-c", _SELECT.format(file=shlex.quote(str(file))))


def arrow_menu(file: Path) -> tuple[str, ...]:
    return (sys.executable, "-c", _ARROWS % str(file))
