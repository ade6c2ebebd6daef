"""Dialogs by the classes in which strangers were read wrongly: fields, keys beside words, odd rows, lists above a
line, choices that cannot be taken, two columns.

Plain data: what stands on the screen, and what a person should be asked.  `test_invented_dialogs` looks at them.
"""

# ruff: noqa: E501
from __future__ import annotations

from tests.core.recognition.invented_dialogs import DOWN, FULL, HIDE, LEFT, LOOK, RIGHT, UP, Invented, blue, grey, lit
from tests.support.playbook import POLLING, RAW, READING, TICKING

SHOW = "\x1b[?25h"


def boxed(*rows: str, wide: int = 60, title: str = "") -> str:
    """Rows in a box. A row with colours says how long it looks: `("text", shown)`."""
    body = "\n".join(f"│ {row}{' ' * (wide - 2 - shown(row))} │" for row in rows)
    head = f"─ {title} " if title else ""
    return f"╭{head}{'─' * (wide - len(head))}╮\n{body}\n╰{'─' * wide}╯\n"


def shown(row: str) -> int:
    at, length = 0, 0
    while at < len(row):
        if row[at] == "\x1b":
            at = row.index("m", at) + 1
        else:
            at, length = at + 1, length + 1
    return length


def bar(text: str, colour: int) -> str:
    return f"\x1b[48;5;{colour}m{text}\x1b[m"


FIELDS = (
    Invented(
        "a placeholder below a drawn caret in a box",
        f"{HIDE}Which port should the server listen on?\n{boxed(lit('e') + grey('.g. 8080'))}{grey('enter to send · esc to skip')}\n",
        "free_text",
        (),
        {"9090": b"9090\r"},
    ),
    Invented(
        "a placeholder below a drawn caret in a box, other words",
        f"{HIDE}What should the release be called?\n{boxed(lit('m') + grey('y-release'))}{grey('↵ submit   ctrl+c abort')}\n",
        "free_text",
        (),
        {"spring": b"spring\r"},
        TICKING,
    ),
    Invented(
        "a placeholder beside a bar on a full screen",
        f"{FULL}What should the report be about?\n\n┃ {grey('Type your answer…')}\n\n{grey('⏎ submit   ctrl+c abort')}\n",
        "free_text",
        (),
        {"sales": b"sales\r"},
    ),
    Invented(
        "a block as the caret between question and keys",
        f"{HIDE}  What is the number of the ticket?\n\n  █\n\n  {grey('enter submit • esc cancel')}\n",
        "free_text",
        (),
        {"BUG-17": b"BUG-17\r"},
    ),
    Invented(
        "an empty box with a count below it",
        f"{HIDE}Describe the bug in one line:\n{boxed('▏')}  {grey('0/50')}\n",
        "free_text",
        (),
        {"it hangs": b"it hangs\r"},
    ),
    Invented(
        "a box with a drawn caret and what was typed",
        f"{HIDE}Name of the branch?\n{boxed('feature/x' + lit(' '))}{grey('Enter to confirm · Esc to cancel')}\n",
        "free_text",
        (),
        {"fix": b"\x7f" * 9 + b"fix\r"},
    ),
    Invented(
        "a line of its own on a full screen",
        f"{FULL}What is your name?\n\n  > \n\n{grey('enter: ok   esc: cancel')}{SHOW}\x1b[3;5H",
        "free_text",
        (),
        {"Ada": b"Ada\r"},
    ),
    Invented(
        "a mark of its own before the question",
        "🦋  Please enter a summary for this change (this will be in the changelogs).\n🦋    (submit empty line to open external editor)\n🦋  Summary ‣ ",
        "free_text",
        (),
        {"fix it": b"fix it\r"},
        POLLING,
    ),
    Invented(
        "another mark of its own before the question",
        "📦 What is this package called? ▸ ",
        "free_text",
        (),
        {"shop": b"shop\r"},
        POLLING,
    ),
    Invented(
        "a warning behind the question",
        "? Enable Gemini in Firebase features? (Y/n) ⚠  Unable to fetch your CLI experiments",
        "yes_no",
        (),
        {"n": b"n\r"},
        POLLING,
    ),
    Invented(
        "a field with its caret below a question that wraps",
        f"{HIDE}│\n◆  What is the name of the project\nthat you want to create?\n│  {lit('m')}{grey('y-app')}\n└\n",
        "free_text",
        (),
        {"shop": b"\x7f" * 6 + b"shop\r"},
        size=(36, 12),
    ),
    Invented(
        "a path with its caret",
        f"{HIDE}│\n◆  Where should it be created?\n│  ./shop{lit(' ')}\n│\n└\n",
        "free_text",
        (),
        {},
    ),
    Invented(
        "a field that may stay empty",
        "? What is the scope of this change? (class or file name): (press [enter] to skip) ",
        "free_text",
        (),
        {},
        POLLING,
    ),
    Invented(
        "a question in words of a calculator", "> 6*7\n\n  6 × 7 = 42\n\n> ", "free_text", (), {"quit": b"quit\r"}, RAW
    ),
)

PATCH = "diff --git a/app.py b/app.py\n-old = 1\n+new = 2\n"
KEYS = (
    Invented(
        "letters in parentheses in a row",
        f"{HIDE}Run `make deploy` now?\n\n  (a)pprove   (d)eny   (e)dit   a(l)ways\n",
        "multiple_choice",
        ("approve", "deny", "edit", "always"),
        {"deny": b"d", "always": b"l", "approve": b"a"},
    ),
    Invented(
        "letters in brackets in a row",
        f"{HIDE}Apply this patch to 3 files?\n\n  {lit('[y]')} yes  {lit('[n]')} no  {lit('[v]')} view diff\n",
        "multiple_choice",
        ("yes", "no", "view diff"),
        {"y": b"y", "no": b"n", "view diff": b"v"},
    ),
    Invented(
        "letters in brackets inside the words of a row",
        f"{HIDE}Write the lock file?\n[Y]es  [N]o  [A]lways  [Q]uit\n",
        "multiple_choice",
        ("Yes", "No", "Always", "Quit"),
        {"yes": b"y", "n": b"n", "Always": b"a", "q": b"q"},
        TICKING,
    ),
    Invented(
        "function keys beside words",
        f"{FULL}settings.ini was changed since it was read.\n\nWhat should happen to your changes?\n\x1b[24;1HF2 Save  F3 Discard  F10 Back",
        "multiple_choice",
        ("Save", "Discard", "Back"),
        {"Discard": b"\x1bOR", "Back": b"\x1b[21~"},
    ),
    Invented(
        "keys beside words in a lit row below a patch",
        f"{FULL}Proposed change to app.py:\n\n{PATCH}\x1b[24;1H{lit(' a accept   r reject   ↑↓ scroll   q quit ')}",
        "multiple_choice",
        ("accept", "reject"),
        {"reject": b"r", "accept": b"a"},
    ),
    Invented(
        "keys beside words below a patch, each lit",
        f"{FULL}Proposed change to app.py:\n\n{PATCH}\x1b[24;1H {lit('y')} approve   {lit('n')} deny   {lit('e')} edit",
        "multiple_choice",
        ("approve", "deny"),
        {"deny": b"n", "approve": b"y"},
    ),
    Invented(
        "keys in a column",
        f"{HIDE}Allow the agent to run `rm -rf build`?\n\n{lit(' y  Yes')}\n a  Always\n n  No\n",
        "multiple_choice",
        ("Yes", "Always", "No"),
        {"n": b"n", "Always": b"a"},
    ),
    Invented(
        "keys in a column, none lit",
        f"{HIDE}Allow the agent to run `rm -rf build`?\n\n  y  Yes, once\n  a  Always\n  n  No\n",
        "multiple_choice",
        ("Yes, once", "Always", "No"),
        {"n": b"n", "Always": b"a"},
    ),
    Invented(
        "keys in a line that takes one key",
        "» Approve? [Y]es [N]o [A]lways ",
        "multiple_choice",
        (),
        {"n": b"n\r", "always": b"a\r"},
        RAW,
    ),
    Invented(
        "keys in parentheses in a line that takes one key",
        "Save changes? (y)es / (n)o / (c)ancel",
        "multiple_choice",
        (),
        {"n": b"n\r", "cancel": b"c\r"},
        RAW,
    ),
    Invented(
        "keys in parentheses behind words that ask",
        "Tool wants to write /etc/hosts (a)pprove (d)eny (e)dit ",
        "multiple_choice",
        (),
        {"deny": b"d\r", "approve": b"a\r"},
        RAW,
    ),
    Invented(
        "letters in brackets inside the words of a column",
        " [L]ist\n [B]ackup now\n [R]estore\n [Q]uit\n\nYour choice: ",
        "multiple_choice",
        ("List", "Backup now", "Restore", "Quit"),
        {"Quit": b"q\r", "Backup now": b"b\r"},
        READING,
    ),
    Invented(
        "letters whose words stand above",
        "Type of package: (single, indep, library, python)\n[s/i/l/p]? ",
        "multiple_choice",
        ("single", "indep", "library", "python"),
        {"library": b"l\r"},
        READING,
    ),
    Invented("letters and a default", "remove it? [ny](n): ", "yes_no", (), {"y": b"y\r"}, READING),
    Invented(
        "keys explained in rows below the question",
        "Should the index be rebuilt?\n  y = yes, takes 10 min\n  n = no\n",
        "yes_no",
        (),
        {"n": b"n\r", "yes": b"y\r"},
        READING,
    ),
    Invented(
        "a remark below the question",
        "Overwrite? [y/N]\n(file is 3 days newer)\n",
        "yes_no",
        (),
        {"y": b"y\r"},
        READING,
    ),
    Invented(
        "a display with its keys is no question",
        f"{FULL}  PID  USER   CPU  COMMAND\n  812  root   3.1  python\n  901  ada    0.4  vim\n\x1b[24;1HF1 Help  F5 Tree  F9 Kill  F10 Quit",
        "none",
        probe=TICKING,
    ),
    Invented(
        "a log with its keys is no question",
        f"{FULL}12:01 built in 3 s\n12:02 waiting for changes\n\x1b[24;1H{lit(' q quit   r reload   ↑↓ scroll ')}",
        "none",
        probe=TICKING,
    ),
)

ODD = (
    Invented(
        "buttons told apart by colour",
        f"{HIDE}Delete the build folder?\n\n   {bar('  Cancel  ', 62)}   {bar('  Delete 14 files  ', 238)}\n",
        "multiple_choice",
        ("Cancel", "Delete 14 files"),
        {"Delete 14 files": RIGHT + b"\r", "Cancel": b"\r"},
    ),
    Invented(
        "buttons told apart by colour, the second lit",
        f"{HIDE}Upload the crash report?\n\n  {bar(' Send ', 236)}  {bar(' Keep it here ', 31)}\n",
        "multiple_choice",
        ("Send", "Keep it here"),
        {"Send": LEFT + b"\r", "Keep it here": b"\r"},
    ),
    Invented(
        "a list in a box drawn with letters that scrolls",
        f"{FULL}lqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqk\nx Pick a zone                  x\nx lqqqqqqqqqqqqqqqqqqqqqqqqqqk x\nx x   {lit('1  Amsterdam')}           x x\nx x   2  Berlin              x x\nx x   3  Cairo               x x\nx mqqqqq↓(+)qqqqqqqqqqqq20%qqj x\ntqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqu\nx     {lit('<  OK  >')}    <Cancel>      x\nmqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqj\n",
        "multiple_choice",
        (),
        {},
    ),
    Invented(
        "a pointer that touches its word",
        f"{HIDE}How was it?\n\n→great\n ok\n bad\n",
        "multiple_choice",
        ("great", "ok", "bad"),
        {"bad": DOWN + DOWN + b"\r"},
        RAW,
    ),
    Invented(
        "a pointer that touches its word, in a list that goes on",
        f"{HIDE}How was it?\n→great\n ok\n bad  ↓",
        "multiple_choice",
        ("great", "ok", "bad"),
        {"ok": DOWN + b"\r"},
        RAW,
    ),
    Invented(
        "a bar as the pointer",
        f"{HIDE}  Deploy to production?\n\n    {grey('Yes, deploy')}\n  │ No, go back\n\n  {grey('enter: confirm  •  esc: back')}\n",
        "multiple_choice",
        ("Yes, deploy", "No, go back"),
        {"y": UP + b"\r", "n": b"\r"},
    ),
    Invented(
        "a bar as the only mark",
        f"{HIDE}Which checkpoint should be restored?\n\n  oldest\n▌ middle\n  newest\n\n{grey('enter: restore')}\n",
        "multiple_choice",
        ("oldest", "middle", "newest"),
        {"newest": DOWN + b"\r", "oldest": UP + b"\r"},
    ),
    Invented(
        "angle brackets around the chosen word",
        f"{HIDE}Discard the draft?\n\n   Yes   ‹ No ›\n",
        "multiple_choice",
        ("Yes", "No"),
        {"y": LEFT + b"\r", "n": b"\r"},
    ),
    Invented(
        "round boxes with a bullet",
        f"{HIDE}Which mode?\n\n  ( ) Fast\n  (•) Balanced\n  ( ) Careful\n\n  {grey('↑/↓ move · enter select')}\n",
        "multiple_choice",
        ("Fast", "Balanced", "Careful"),
        {"Balanced": b"\r"},
        unsure=True,
    ),
    Invented(
        "a list below the line of its filter",
        f"? Running processes: \n❯ python3.13 12160 {grey('/usr/bin/python3.13')}\n  node 8123 {grey('node server.js')}\n  vim 77 {grey('vim a.txt')}\n\n{grey('↑↓ navigate • ⏎ select')}\x1b[1;22H",
        "multiple_choice",
        (),
        {},
    ),
    Invented(
        "boxes below their instructions",
        f"{HIDE}Which parts do you want?\n  (Use arrow keys to move, <space> to select, <a> to toggle, <i> to invert)\n » ○ docs\n   ○ tests\n   ○ ci\n",
        "multiple_choice",
        ("docs", "tests", "ci"),
        {},
    ),
    Invented(
        "boxes below several rows of instructions",
        f"{HIDE}\x1b[36m?\x1b[m \x1b[1mPick colours\x1b[m ›\x1b[m  \n\nInstructions:\n    ↑/↓: Highlight option\n    ←/→/[space]: Toggle selection\n    a: Toggle all\n    enter/return: Complete answer\n◯   \x1b[36mRed\x1b[m\n◯   Green\n◯   \x1b[9;90mBlue\x1b[m\n◯   Yellow\n",
        "multiple_choice",
        ("Red", "Green", "Yellow"),
        {"Red,Yellow": b" \x1b[B\x1b[B \r", "Blue": None},
    ),
    Invented(
        "a table with a lit row",
        f"{HIDE}Which backup should be restored?\n\n  Date        Size   Host\n  2026-01-02  12 MB  web1\n{lit('  2026-01-09  14 MB  web1')}\n  2026-01-16  15 MB  web2\n\n{grey('enter: restore   q: quit')}\n",
        LOOK,
    ),
    Invented(
        "tasks of which one spins are no list",
        f"{HIDE}✔ lint\n⠋ types\n  bundle\n  publish\n",
        "none",
        probe=TICKING,
    ),
    Invented("a tick is no pointer", f"{HIDE}✔ lint\n  types\n  bundle\n", "none", probe=TICKING),
)

NUMBERED = (
    Invented(
        "numbers with gaps above a bare word",
        "10) ten\n20) twenty\n99) quit\nCode: ",
        "multiple_choice",
        ("ten", "twenty", "quit"),
        {"20": b"20\r", "quit": b"99\r"},
        READING,
    ),
    Invented(
        "numbers in brackets from zero",
        "  [0] none\n  [1] daily\n  [2] weekly\nSchedule: ",
        "multiple_choice",
        ("none", "daily", "weekly"),
        {"weekly": b"2\r", "0": b"0\r"},
        READING,
    ),
    Invented(
        "numbers in no order",
        "2. two\n4. four\n3. three\n9. nine\nPick one:",
        "multiple_choice",
        ("two", "four", "three", "nine"),
        {"nine": b"9\r", "4": b"4\r"},
        READING,
    ),
    Invented(
        "numbers above a span",
        "Choose a license (see http://choosealicense.com/ for more info)\n1. MIT - simple and permissive\n2. Apache - explicitly grants patent rights\n3. GPL - ensures that code based on this is shared with the same terms\n4. Skip - choose a license later\nEnter 1-4: ",
        "multiple_choice",
        ("MIT - simple and permissive", "Skip - choose a license later"),
        {"4": b"4\r"},
        READING,
    ),
    Invented(
        "numbers in columns",
        "Please select the zone.\n\n  1. Aden      11. Baku     21. Delhi\n  2. Almaty    12. Bangkok  22. Dhaka\n  3. Amman     13. Beirut   23. Dubai\n  4. Anadyr    14. Bishkek\n  5. Aqtau     15. Brunei\n  6. Aqtobe    16. Chita\n  7. Ashgabat  17. Colombo\n  8. Atyrau    18. Damascus\n  9. Baghdad   19. Dili\n  10. Bahrain  20. Doha\n\nTime zone: ",
        "multiple_choice",
        ("Aden", "Dubai", "Doha"),
        {"Dubai": b"23\r"},
        READING,
    ),
    Invented(
        "a scale in one row",
        "How did it go?\n  1: Bad    2: Fine   3: Good   0: Dismiss\n> ",
        "multiple_choice",
        ("Bad", "Fine", "Good", "Dismiss"),
        {"Good": b"3\r"},
        READING,
    ),
    Invented(
        "numbers with a gap that are shown",
        "Please select what kind of key you want:\n   (1) RSA and RSA\n   (2) DSA and Elgamal\n   (9) ECC (sign and encrypt) *default*\n  (14) Existing key from card\nYour selection? ",
        "multiple_choice",
        ("RSA and RSA", "Existing key from card"),
        {"14": b"14\r"},
        READING,
    ),
    Invented(
        "a list in a line editor that reads single keys",
        "? Again?\n  1) One\n  2) Two\n  Answer: ",
        "multiple_choice",
        ("One", "Two"),
        {"Two": b"2\r"},
        POLLING,
    ),
    Invented(
        "a list with a key of its own",
        "? Which region?\n  1) Europe\n  2) America\n  x) Far east\n  Answer: ",
        "multiple_choice",
        ("Europe", "America", "Far east"),
        {"Far east": b"x\r"},
        POLLING,
    ),
    Invented(
        "a numbered list above another question is none",
        "Steps done:\n1. fetched\n2. built\n3. tested\n\nName of the release: ",
        "free_text",
        (),
        {"v1": b"v1\r"},
        READING,
    ),
    Invented(
        "numbered output above a shell is no list",
        "  1  ls\n  2  cd src\n  3  make\n$ ",
        "free_text",
        (),
        {},
        READING,
        unsure=True,
    ),
)

DISABLED = (
    Invented(
        "a choice with a dash cannot be taken",
        f"{HIDE}? Which size? (Use arrow keys)\n » Small\n   Medium\n   - Large (sold out)\n   Huge\n",
        "multiple_choice",
        ("Small", "Medium", "Huge"),
        {"sold out": None, "Huge": DOWN + b"\r"},
    ),
    Invented(
        "a choice that says that it is disabled",
        f"{HIDE}? Which size? (Use arrow keys)\n❯ Small\n  Medium (disabled)\n  Large\n",
        "multiple_choice",
        ("Small", "Large"),
        {"Medium": None},
    ),
)

COLUMNS = (
    Invented(
        "a dialog in the right half",
        f"{FULL}"
        + "\n".join(
            f"{left:<38} │ {right}"
            for left, right in (
                ("def main():", "Permission"),
                ("    args = parse()", ""),
                ("    run(args)", "Allow `make deploy`?"),
                ("", ""),
                ("if __name__ == '__main__':", "  ▌ Accept"),
                ("    main()", "    Reject"),
                ("", ""),
                ("", grey("↑↓ move · enter select")),
            )
        ),
        "multiple_choice",
        ("Accept", "Reject"),
        {"Reject": DOWN + b"\r"},
    ),
    Invented(
        "a list beside its preview",
        f"{FULL}"
        + "\n".join(
            f"{left:<38} │ {right}"
            for left, right in (
                ("Which commit should be reverted?", "commit 81ad"),
                ("", "Author: Ada"),
                ("❯ Fix the parser", "1. parse"),
                ("  Add a test", "2. test"),
                ("  Release 1.2", ""),
                ("", ""),
                (grey("↑↓ move · enter select") + " " * 16, ""),
            )
        ),
        "multiple_choice",
        ("Fix the parser", "Add a test", "Release 1.2"),
        {"Add a test": DOWN + b"\r"},
    ),
)

ALLOW = f"{HIDE}Allow the agent to run `make deploy`?\n\n"


def bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[m"


def under(text: str) -> str:
    return f"\x1b[4m{text}\x1b[m"


FIELDS_TOO = (
    Invented(
        "box mark placeholder",
        f"{HIDE}What should the commit say?\n{boxed('> ' + grey('Type your answer here…'))}{grey('Enter to submit • Esc to cancel')}\n",
        "free_text",
        (),
        {"fix": b"fix\r"},
    ),
    Invented(
        "box caret glyph half",
        f"{HIDE}What should the commit say?\n{boxed('▌')}{grey('Enter to submit • Esc to cancel')}\n",
        "free_text",
        (),
        {"fix": b"fix\r"},
    ),
    Invented(
        "label underscore",
        f"{HIDE}New project\n\n  Name: _\n\n  {grey('enter: create   esc: cancel')}\n",
        "free_text",
        (),
        {"fix": b"fix\r"},
    ),
    Invented(
        "box visible cursor",
        f"Branch name?\n{boxed('')}{grey('enter to confirm')}\x1b[3;3H",
        "free_text",
        (),
        {"fix": b"fix\r"},
    ),
    Invented(
        "box visible cursor title",
        f"{boxed('', title='Branch name?')}{grey('enter to confirm')}\x1b[2;3H",
        "free_text",
        (),
        {"fix": b"fix\r"},
    ),
    Invented(
        "box visible placeholder",
        f"Branch name?\n{boxed(grey('e.g. main'))}{grey('enter to confirm')}\x1b[3;3H",
        "free_text",
        (),
        {"fix": b"fix\r"},
    ),
    Invented(
        "full screen title box",
        f"{FULL}\n\n" + boxed("Enter the host name:", "", "> " + lit(" ")),
        "free_text",
        (),
        {"fix": b"fix\r"},
    ),
    Invented(
        "label caret reversed",
        f"{HIDE}\n  Host: {lit(' ')}\n\n  {grey('⏎ next   esc back')}\n",
        "free_text",
        (),
        {"fix": b"fix\r"},
    ),
    Invented(
        "question and caret in a row",
        f"{HIDE}What is the host? {lit(' ')}\n\n{grey('enter to continue')}\n",
        "free_text",
        (),
        {"fix": b"fix\r"},
    ),
    Invented("emoji", "✏️  Describe the change: ", "free_text", (), {"fix": b"fix\r"}, RAW),
    Invented("emoji 2", "🔑 Project name › ", "free_text", (), {"fix": b"fix\r"}, POLLING),
    Invented(
        "two rows",
        "✨ Choose a name for the branch\n   (letters and digits) ▸ ",
        "free_text",
        (),
        {"fix": b"fix\r"},
        POLLING,
    ),
)

KEYS_TOO = (
    Invented(
        "angles", ALLOW + "<y> Yes   <n> No   <a> Always\n", "multiple_choice", ("Yes", "No", "Always"), {"n": b"n"}
    ),
    Invented("paren", ALLOW + "Y) Yes   N) No   A) Always\n", "multiple_choice", ("Yes", "No", "Always"), {"n": b"N"}),
    Invented("equals", ALLOW + "y=yes  n=no  a=always\n", "multiple_choice", ("yes", "no", "always"), {"n": b"n"}),
    Invented(
        "digits",
        ALLOW + "[1] Allow once  [2] Allow always  [3] Deny\n",
        "multiple_choice",
        ("Allow once", "Deny"),
        {"n": b"3"},
    ),
    Invented(
        "ctrl", ALLOW + "Ctrl+A Approve   Ctrl+R Reject\n", "multiple_choice", ("Approve", "Reject"), {"n": b"\x12"}
    ),
    Invented("caret", ALLOW + "^A Approve   ^R Reject\n", "multiple_choice", ("Approve", "Reject"), {"n": b"\x12"}),
    Invented("dots", ALLOW + "y Yes · n No · a Always\n", "multiple_choice", ("Yes", "No", "Always"), {"n": b"n"}),
    Invented("bars", ALLOW + "y Yes | n No | a Always\n", "multiple_choice", ("Yes", "No", "Always"), {"n": b"n"}),
    Invented("slashes", ALLOW + "[y]es / [n]o / [a]lways\n", "multiple_choice", ("yes", "no", "always"), {"n": b"n"}),
    Invented(
        "column paren",
        ALLOW + "  (y) Yes, once\n  (a) Always\n  (n) No\n",
        "multiple_choice",
        ("Yes, once", "No"),
        {"n": b"n"},
    ),
    Invented(
        "column bracket",
        ALLOW + "  [y] Yes, once\n  [a] Always\n  [n] No\n",
        "multiple_choice",
        ("Yes, once", "No"),
        {"n": b"n"},
    ),
    Invented(
        "column y)",
        ALLOW + "  y) Yes, once\n  a) Always\n  n) No\n",
        "multiple_choice",
        ("Yes, once", "No"),
        {"n": b"n"},
    ),
    Invented(
        "column glued",
        ALLOW + "  [Y]es, once\n  [A]lways\n  [N]o\n",
        "multiple_choice",
        ("Yes, once", "No"),
        {"n": b"n"},
    ),
    Invented(
        "column dash",
        ALLOW + "  y - Yes, once\n  a - Always\n  n - No\n",
        "multiple_choice",
        ("Yes, once", "No"),
        {"n": b"n"},
    ),
    Invented(
        "box keys",
        f"{HIDE}" + boxed("Allow `make deploy`?", "", "[y] Allow  [n] Deny  [a] Always"),
        "multiple_choice",
        ("Allow", "Deny"),
        {"n": b"n"},
    ),
    Invented(
        "full foot",
        f"{FULL}Allow `make deploy`?\x1b[24;1H{lit('Y')} Allow  {lit('N')} Deny",
        "multiple_choice",
        ("Allow", "Deny"),
        {"n": b"N"},
    ),
    Invented(
        "F keys 2",
        f"{FULL}Save the changes before leaving?\n\n F1=Yes  F2=No  F3=Cancel",
        "multiple_choice",
        ("Yes", "No", "Cancel"),
        {"n": b"\x1bOQ"},
    ),
    Invented("quit status", f"{FULL}GET / 200\nGET /x 404\n\x1b[24;1H q Quit  r Reload  ? Help", "none", probe=TICKING),
    Invented(
        "vite",
        "  VITE ready in 300 ms\n\n  ➜  Local: http://localhost:5173/\n  ➜  press h + enter to show help\n",
        "none",
        probe=TICKING,
    ),
)

ODD_TOO = (
    Invented(
        "bold only",
        f"{HIDE}Which size?\n\n  Small\n  {bold('Medium')}\n  Large\n",
        "multiple_choice",
        ("Small", "Medium", "Large"),
        {"Large": DOWN + b"\r"},
    ),
    Invented(
        "underline only",
        f"{HIDE}Which size?\n\n  Small\n  {under('Medium')}\n  Large\n",
        "multiple_choice",
        ("Small", "Medium", "Large"),
        {"Large": DOWN + b"\r"},
    ),
    Invented(
        "truecolor row",
        f"{HIDE}Which size?\n\n  Small     \n\x1b[48;2;40;80;160m  Medium    \x1b[m\n  Large     \n",
        "multiple_choice",
        ("Small", "Medium", "Large"),
        {"Large": DOWN + b"\r"},
    ),
    Invented(
        "star",
        f"{HIDE}Which size?\n\n  Small\n* Medium\n  Large\n",
        "multiple_choice",
        ("Small", "Medium", "Large"),
        {"Large": DOWN + b"\r"},
    ),
    Invented(
        "three buttons bg",
        f"{HIDE}Save changes?\n\n  {bar(' Save ', 25)}  {bar(' Discard ', 240)}  {bar(' Cancel ', 240)}\n",
        "multiple_choice",
        ("Save", "Discard", "Cancel"),
        {"Cancel": RIGHT + RIGHT + b"\r"},
    ),
    Invented(
        "buttons inverse",
        f"{HIDE}Save changes?\n\n  {lit(' Save ')}   Discard    Cancel \n",
        "multiple_choice",
        ("Save", "Discard", "Cancel"),
        {"Cancel": RIGHT + RIGHT + b"\r"},
    ),
    Invented(
        "buttons bracket colour",
        f"{HIDE}Save changes?\n\n  \x1b[1;32m[ Save ]\x1b[m  [ Discard ]  [ Cancel ]\n",
        "multiple_choice",
        ("Save", "Discard", "Cancel"),
        {"Cancel": RIGHT + RIGHT + b"\r"},
    ),
    Invented(
        "yes no pipe",
        f"{HIDE}Delete it?  {lit('Yes')} | No\n",
        "multiple_choice",
        ("Yes", "No"),
        {"No": RIGHT + b"\r"},
        unsure=True,
    ),
    Invented(
        "radio circles",
        f"{HIDE}Which size?\n\n  ○ Small\n  ● Medium\n  ○ Large\n",
        "multiple_choice",
        ("Small", "Medium", "Large"),
        {"Large": DOWN + b"\r"},
    ),
    Invented(
        "boxes check",
        f"{HIDE}Which parts?\n\n> [ ] docs\n  [x] tests\n  [ ] ci\n\n{grey('space: toggle  enter: done')}\n",
        "multiple_choice",
        ("docs", "tests", "ci"),
        {},
    ),
    Invented(
        "scroll arrows",
        f"{HIDE}Which size?\n  ▲\n  Small\n❯ Medium\n  Large\n  ▼\n",
        "multiple_choice",
        ("Small", "Medium", "Large"),
        {"Large": DOWN + b"\r"},
    ),
)

NUMBERED_TOO = (
    Invented(
        "letters dot",
        "A. red\nB. green\nC. blue\nAnswer: ",
        "multiple_choice",
        ("red", "green", "blue"),
        {"green": b"B\r"},
        READING,
    ),
    Invented(
        "bare space",
        "  1 red\n  2 green\n  3 blue\nSelect: ",
        "multiple_choice",
        ("red", "green"),
        {"green": b"2\r"},
        READING,
    ),
    Invented(
        "descr",
        "1) red\n     warm\n2) green\n     calm\n3) blue\n     cold\nColour: ",
        "multiple_choice",
        ("red", "green", "blue"),
        {"green": b"2\r"},
        READING,
    ),
    Invented(
        "blank rows",
        "1) red\n\n2) green\n\n3) blue\n\nColour? ",
        "multiple_choice",
        ("red", "green", "blue"),
        {"green": b"2\r"},
        READING,
        unsure=True,
    ),
    Invented(
        "q to quit",
        "  1. red\n  2. green\n  q. quit\nEnter number (q to quit): ",
        "multiple_choice",
        ("red", "green", "quit"),
        {"quit": b"q\r"},
        READING,
    ),
    Invented(
        "zero last",
        "  1. red\n  2. green\n  0. exit\n> ",
        "multiple_choice",
        ("red", "green", "exit"),
        {"exit": b"0\r"},
        READING,
        unsure=True,
    ),
    Invented(
        "pick 1", "[1] red\n[2] green\nYour pick [1]: ", "multiple_choice", ("red", "green"), {"green": b"2\r"}, READING
    ),
    Invented(
        "which one",
        "Servers:\n  1: web1\n  2: web2\nWhich one? ",
        "multiple_choice",
        ("web1", "web2"),
        {"web2": b"2\r"},
        READING,
    ),
    Invented("german", "1) rot\n2) blau\nFarbe: ", "multiple_choice", ("rot", "blau"), {"blau": b"2\r"}, READING),
    Invented(
        "arrow list",
        " 1 -> red\n 2 -> green\nColour: ",
        "multiple_choice",
        ("red", "green"),
        {"green": b"2\r"},
        READING,
        unsure=True,
    ),
    Invented(
        "raw",
        "1) red\n2) green\n3) blue\nColour: ",
        "multiple_choice",
        ("red", "green", "blue"),
        {"green": b"2\r"},
        POLLING,
    ),
    Invented(
        "no list",
        "Found 3 problems:\n1. x.py is long\n2. y.py is old\n3. z.py is empty\n\nEnter your e-mail: ",
        "free_text",
        (),
        {"a@b.c": b"a@b.c\r"},
        READING,
    ),
    Invented("password", "1. fetched\n2. built\nPassword: ", "free_text", (), {"x1": b"x1\r"}, RAW),
)

COLUMNS_TOO = (
    Invented(
        "pipe right",
        f"{FULL}"
        + "\n".join(
            f"{left:<30}| {right}"
            for left, right in (
                ("src/", "Delete src/app.py?"),
                ("  app.py", ""),
                ("  util.py", "❯ Yes"),
                ("tests/", "  No"),
                ("README", ""),
            )
        ),
        "multiple_choice",
        ("Yes", "No"),
        {"n": DOWN + b"\r"},
    ),
    Invented(
        "double left",
        f"{FULL}"
        + "\n".join(
            f"{left:<30}║ {right}"
            for left, right in (
                ("Delete src/app.py?", "1 import os"),
                ("", "2"),
                ("> Yes", "3 def main():"),
                ("  No", "4     pass"),
                ("", "5"),
            )
        ),
        "multiple_choice",
        ("Yes", "No"),
        {"n": DOWN + b"\r"},
    ),
    Invented(
        "right keys",
        f"{FULL}"
        + "\n".join(
            f"{left:<30}│ {right}"
            for left, right in (
                ("src/", "Delete src/app.py?"),
                ("  app.py", ""),
                ("  util.py", "[y] Yes  [n] No"),
                ("tests/", ""),
                ("README", ""),
            )
        ),
        "multiple_choice",
        ("Yes", "No"),
        {"n": b"n"},
    ),
    Invented(
        "right numbers",
        f"{FULL}"
        + "\n".join(
            f"{left:<30}│ {right}"
            for left, right in (
                ("src/", "Delete src/app.py?"),
                ("  app.py", "❯ 1. Yes"),
                ("  util.py", "  2. Yes, all"),
                ("tests/", "  3. No"),
                ("README", ""),
            )
        ),
        "multiple_choice",
        ("Yes", "No"),
        {"n": DOWN + DOWN + b"\r"},
    ),
)

DISABLED_TOO = (
    Invented(
        "coming soon",
        f"{HIDE}? Which plan? (Use arrow keys)\n❯ Free\n  Pro (unavailable)\n  Team\n",
        "multiple_choice",
        ("Free", "Team"),
        {"Pro": None},
    ),
    Invented(
        "strike",
        f"{HIDE}? Which plan?\n❯ Free\n  \x1b[9mPro\x1b[m\n  Team\n",
        "multiple_choice",
        ("Free", "Team"),
        {"Pro": None},
    ),
    Invented(
        "dash",
        f"{HIDE}? Which plan?\n> Free\n- Pro (disabled)\n  Team\n",
        "multiple_choice",
        ("Free", "Team"),
        {"Pro": None},
    ),
    Invented(
        "numbered disabled",
        f"{HIDE}? Which plan?\n❯ 1) Free\n  2) Pro (disabled)\n  3) Team\n",
        "multiple_choice",
        ("Free", "Team"),
        {"Pro": None},
    ),
)


LIBRARIES_TOO = (  # driven for real, or drawn as their manuals show them; each was misread once
    Invented(
        "labels with a colon, each explained beside it",
        f"{HIDE}? Select the type of change: (Use arrow keys)\n❯ feat:     A new feature\n  fix:      A bug fix\n  docs:     Only words\n",
        "multiple_choice",
        ("feat:", "fix:", "docs:"),
        {"docs": DOWN + DOWN + b"\r"},
        RAW,
    ),
    Invented(
        "numbers with gaps that the labels begin with",
        f"{HIDE}? Which branch?\n❯ (2) main\n  (4) stable\n  (7) next\n",
        "multiple_choice",
        ("(2) main", "(4) stable", "(7) next"),
        {"4": DOWN + b"\r", "1": None},
        RAW,
    ),
    Invented(
        "sentences of which one is coloured",
        f"{HIDE}Which of them is new?\n\n  It reads it first, then asks\n  \x1b[35mIt asks us first, then reads\x1b[m\n  It asks nobody, and reads\n",
        LOOK,
        probe=RAW,
    ),
    Invented(
        "a question in the column of its choices",
        f"{HIDE}  Which colour?\n❯ Red\n  Green\n",
        "multiple_choice",
        ("Red", "Green"),
        {"Which colour?": None, "Green": DOWN + b"\r"},
    ),
    Invented(
        "dialoguer, a question of two rows",
        f"{HIDE}? 🤷 Which kind of bindings to use?\n  📖 Documentation: https://maturin.rs/bindings.html ›\n❯ pyo3\n  cffi\n  bin\n",
        "multiple_choice",
        ("pyo3", "cffi", "bin"),
        {"1": b"\r", "cffi": DOWN + b"\r"},
    ),
    Invented(
        "rows that open others",
        f"{HIDE}? Which setting?\n  Files ›\n❯ Red\n  Net ›\n",
        "multiple_choice",
        ("Files ›", "Red", "Net ›"),
        {"1": UP + b"\r"},
    ),
    Invented(
        "huh, several",
        f"{HIDE}┃ Toppings\n┃ > ✓ Lettuce\n┃   ✓ Tomatoes\n┃   • Corn\n┃   • Salsa\n\nx toggle • ↑ up • ↓ down • / filter • enter confirm\n",
        "multiple_choice",
        ("Lettuce", "Tomatoes", "Corn", "Salsa"),
    ),
    Invented("gum filter", f"{HIDE}> {lit('T')}ype to filter...\n• Red\n  Green\n  Blue\n", "unknown"),
    Invented(
        "inquire, a date",
        f"{HIDE}? When? \n> <         november 2026         >\n  Su Mo Tu We Th Fr Sa\n   1  2  3  4  5  6  7\n   8  9 10 11 12 13 14\n[arrows to move, with ctrl to move months and years, enter to select]\n",
        "unknown",
    ),
    Invented(
        "Ink, several without marks", f"{HIDE}Which colours do you want?\n{blue('❯ Red')}\n  Green\n  Blue\n", "unknown"
    ),
    Invented(
        "amp",
        f"{HIDE}╭────────────────────────────╮\n│ Run this command?          │\n│ rm -rf build               │\n│                            │\n│ ▸ Approve                  │\n│   Allow All for Session    │\n│   Deny with feedback       │\n╰────────────────────────────╯\n  ~/work\n",
        "multiple_choice",
        ("Approve", "Allow All for Session", "Deny with feedback"),
        {"1": b"\r"},
    ),
    Invented(
        "crush",
        f"{HIDE}╭─────────────────────────────────────╮\n│ Permission Required ╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱ │\n│ Tool  bash                          │\n│ rm -rf build                        │\n│                                     │\n│  \x1b[48;5;99m Allow \x1b[m  \x1b[48;5;238m Allow for Session \x1b[m  \x1b[48;5;238m Deny \x1b[m │\n╰─────────────────────────────────────╯\n",
        "multiple_choice",
        ("Allow", "Allow for Session", "Deny"),
        {"Deny": RIGHT + RIGHT + b"\r"},
    ),
)


ALL = (
    *FIELDS, *KEYS, *ODD, *NUMBERED, *DISABLED, *COLUMNS,
    *FIELDS_TOO, *KEYS_TOO, *ODD_TOO, *NUMBERED_TOO, *COLUMNS_TOO, *DISABLED_TOO,
    *LIBRARIES_TOO,
)  # fmt: skip
