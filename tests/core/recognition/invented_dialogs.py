"""Dialogs that were invented after the recogniser was written, in the looks of many libraries, languages and sizes.

Plain data: what stands on the screen, and what a person should be asked.  `test_invented_dialogs` looks at them.
"""

# ruff: noqa: E501
from __future__ import annotations

from dataclasses import dataclass, field

from tests.support.playbook import BUSY, ONE_KEY, POLLING, RAW, READING, TICKING

from atlasbridge.core.detection.events import ProbeAnswer

HIDE = "\x1b[?25l"
FULL = f"\x1b[?1049h\x1b[2J\x1b[H{HIDE}"
LOOK = "unknown"  # which keys lead on is not certain: a person must look


@dataclass(frozen=True)
class Invented:
    name: str
    screen: str
    kind: str  # a type, "idle", or "none"
    choices: tuple[str, ...] = ()
    answers: dict[str, bytes | None] = field(default_factory=dict)  # what is said, what is typed; None: it is refused
    probe: ProbeAnswer = POLLING
    size: tuple[int, int] = (80, 24)
    unsure: bool = False  # `unknown` is as good


def grey(text: str) -> str:
    return f"\x1b[38;5;241m{text}\x1b[m"


def lit(text: str) -> str:
    return f"\x1b[7m{text}\x1b[m"


def blue(text: str) -> str:
    return f"\x1b[36m{text}\x1b[m"


DOWN, UP, LEFT, RIGHT = b"\x1b[B", b"\x1b[A", b"\x1b[D", b"\x1b[C"

GO = (
    Invented(
        "gum confirm",
        f"{HIDE}\x1b[1mDelete all branches?\x1b[m\n\n  \x1b[48;5;212;38;5;230m  Yes  \x1b[m  \x1b[48;5;235;38;5;254m  No  \x1b[m\n\n"
        + grey("←→ toggle • enter submit • y Yes • n No"),
        "multiple_choice",
        ("Yes", "No"),
        {"y": b"\r", "n": RIGHT + b"\r"},
        TICKING,
    ),
    Invented(
        "gum confirm, own words",
        f"{HIDE}\x1b[1mShip it to production?\x1b[m\n\n  \x1b[48;5;235;38;5;254m  Yes, ship it  \x1b[m  \x1b[48;5;212;38;5;230m  No, wait  \x1b[m\n\n"
        + grey("←→ toggle • enter submit"),
        "multiple_choice",
        ("Yes, ship it", "No, wait"),
        {"y": LEFT + b"\r", "n": b"\r"},
        TICKING,
    ),
    Invented(
        "gum choose, several",
        f"{HIDE}Pick reviewers:\n\x1b[38;5;212m> \x1b[m\x1b[38;5;212m• Ada\x1b[m\n  • Grace\n  ✓ Linus\n\n"
        + grey("x toggle • ←↓↑→ navigate • enter submit • ctrl+a select all"),
        "multiple_choice",
        ("Ada", "Grace", "Linus"),
        {},
        TICKING,
    ),
    Invented(
        "gum input",
        f"{HIDE}Branch name?\n\x1b[38;5;212m> \x1b[m\x1b[7mf\x1b[m" + grey("eature/..."),
        "free_text",
        (),
        {},
        TICKING,
        unsure=True,
    ),
    Invented(
        "huh select",
        f"{HIDE}\x1b[38;5;63m┃\x1b[m \x1b[1mWhich region?\x1b[m\n\x1b[38;5;63m┃\x1b[m \x1b[38;5;212m> \x1b[m\x1b[38;5;212meu-west\x1b[m\n\x1b[38;5;63m┃\x1b[m   us-east\n\x1b[38;5;63m┃\x1b[m   ap-south\n\n"
        + grey("↑ up • ↓ down • / filter • enter submit"),
        "multiple_choice",
        ("eu-west", "us-east", "ap-south"),
        {"2": DOWN + b"\r"},
        TICKING,
    ),
    Invented(
        "huh confirm",
        f"{HIDE}\x1b[38;5;63m┃\x1b[m \x1b[1mOverwrite config?\x1b[m\n\x1b[38;5;63m┃\x1b[m\n\x1b[38;5;63m┃\x1b[m     \x1b[48;5;238m  Yes  \x1b[m  \x1b[48;5;212;1m  No  \x1b[m\n\n"
        + grey("←/→ toggle • enter submit • y Yes • n No"),
        "multiple_choice",
        ("Yes", "No"),
        {"y": LEFT + b"\r", "n": b"\r"},
        TICKING,
    ),
    Invented(
        "promptui select",
        f"{HIDE}Use the arrow keys to navigate: ↓ ↑ → ← \n{blue('?')} Select Day: \n  ▸ {blue('Monday')}\n    Tuesday\n    Wednesday\n↓   Thursday\n",
        "multiple_choice",
        ("Monday", "Tuesday", "Wednesday", "Thursday"),
        {"Tuesday": DOWN + b"\r"},
    ),
    Invented("promptui prompt", "\x1b[1m✔\x1b[m Number: ", "free_text"),
    Invented("promptui confirm", f"{blue('?')} Delete Resource? [y/N] ", "yes_no", (), {"y": b"y\r"}),
    Invented(
        "survey multiselect",
        f"{HIDE}\x1b[32m? \x1b[mWhat days do you prefer:  \x1b[36m[Use arrows to move, space to select, <right> to all, <left> to none, type to filter]\x1b[m\n\x1b[36m> [ ]  Sunday\x1b[m\n  [x]  Monday\n  [ ]  Tuesday\n",
        "multiple_choice",
        ("Sunday", "Monday", "Tuesday"),
        {},
        size=(120, 24),
    ),
    Invented(
        "survey editor",
        "\x1b[32m? \x1b[mRelease notes \x1b[36m[Enter to launch editor] \x1b[m",
        "confirm_enter",
        unsure=True,
    ),
    Invented(
        "bubbletea choices",
        f"{HIDE}What would you like to do?\n\n\x1b[38;5;212m[x] Plant carrots\x1b[m\n[ ] Go to the market\n[ ] See friends\n\n"
        + grey("j/k, up/down: select • enter: choose • q, esc: quit"),
        "multiple_choice",
        ("Plant carrots", "Go to the market", "See friends"),
        {"2": DOWN + b"\r"},
        TICKING,
        unsure=True,
    ),
    Invented(
        "bubbletea list",
        FULL
        + "\n  \x1b[48;5;62;38;5;230m Things to deploy \x1b[m\n\n  "
        + grey("3 items")
        + "\n\n\x1b[38;5;212m│ web\x1b[m\n\x1b[38;5;212m│ the site\x1b[m\n\n  api\n  "
        + grey("the service")
        + "\n\n  worker\n  "
        + grey("the queue")
        + "\n\n\n  "
        + grey("↑/k up • ↓/j down • / filter • q quit • ? more"),
        LOOK,
        (),
        {},
        TICKING,
    ),
    Invented(
        "bubbletea text",
        f"{HIDE}What is the name of the server?\n\n> {lit('P')}{grey('ikachu')}\n\n{grey('(esc to quit)')}\n",
        "free_text",
        (),
        {},
        TICKING,
        unsure=True,
    ),
)

RUST = (
    Invented(
        "dialoguer select",
        f"{HIDE}\x1b[33m?\x1b[m \x1b[1mPick your flavor\x1b[m \x1b[38;5;8m›\x1b[m\n\x1b[32m❯\x1b[m \x1b[36mIce Cream\x1b[m\n  Vanilla Cupcake\n  Chocolate Muffin\n",
        "multiple_choice",
        ("Ice Cream", "Vanilla Cupcake", "Chocolate Muffin"),
        {"3": DOWN + DOWN + b"\r"},
    ),
    Invented(
        "dialoguer several",
        f"{HIDE}\x1b[33m?\x1b[m \x1b[1mPick your food\x1b[m \x1b[38;5;8m›\x1b[m\n\x1b[32m❯\x1b[m ⬚ \x1b[36mIce Cream\x1b[m\n  ⬚ Vanilla\n  \x1b[32m✔\x1b[m Chocolate\n",
        "multiple_choice",
        ("Ice Cream", "Vanilla", "Chocolate"),
        {},
        unsure=True,
    ),
    Invented(
        "dialoguer confirm",
        f"{HIDE}\x1b[33m?\x1b[m \x1b[1mDo you want to continue?\x1b[m \x1b[38;5;8m(y/n)\x1b[m \x1b[38;5;8m›\x1b[m \x1b[36myes\x1b[m",
        "yes_no",
        (),
        {"n": b"n\r"},
    ),
    Invented(
        "dialoguer password", f"{HIDE}\x1b[33m?\x1b[m \x1b[1mVault passphrase\x1b[m \x1b[38;5;8m›\x1b[m ", "free_text"
    ),
    Invented(
        "inquire select",
        f"{HIDE}\x1b[92m?\x1b[m What's your favorite fruit? \n\x1b[96m>\x1b[m \x1b[96mBanana\x1b[m\n  Apple\n  Strawberry\nv Grapes\n\x1b[96m[↑↓ to move, enter to select, type to filter]\x1b[m\x1b[5A\x1b[30G\x1b[?25h",
        "multiple_choice",
        ("Banana", "Apple", "Strawberry", "Grapes"),
        {},
        unsure=True,
    ),
    Invented(
        "inquire several",
        f"\x1b[92m?\x1b[m Which tools? \n\x1b[96m>\x1b[m \x1b[92m[x]\x1b[m fmt\n  [ ] clippy\n  [ ] miri\n\x1b[96m[↑↓ to move, space to select one, → to all, ← to none, type to filter]\x1b[m{HIDE}",
        "multiple_choice",
        ("fmt", "clippy", "miri"),
    ),
    Invented("inquire confirm", "\x1b[92m?\x1b[m Do you live in Brazil? (y/n) ", "yes_no"),
    Invented(
        "inquire date",
        f"{HIDE}\x1b[92m?\x1b[m When do you leave? 2026-11-17\n\x1b[92m>\x1b[m        november 2026\n\x1b[92m>\x1b[m  su mo tu we th fr sa\n\x1b[92m>\x1b[m   1  2  3  4  5  6  7\n\x1b[92m>\x1b[m   8  9 10 11 12 13 14\n\x1b[92m>\x1b[m  15 16 \x1b[7m17\x1b[m 18 19 20 21\n\x1b[96m[arrows to move, with ctrl to move months and years, enter to select]\x1b[m",
        LOOK,
    ),
    Invented(
        "inquire text with help",
        "\x1b[92m?\x1b[m How old are you? \n\x1b[96m[it is only for the statistics]\x1b[m\x1b[1A\x1b[20G",
        "free_text",
    ),
)

NODE = (
    Invented(
        "clack select",
        f"{HIDE}\x1b[90m│\x1b[m\n\x1b[36m◆\x1b[m  Which package manager?\n\x1b[36m│\x1b[m  \x1b[32m●\x1b[m npm \x1b[2m(comes with node)\x1b[m\n\x1b[36m│\x1b[m  \x1b[2m○\x1b[m \x1b[2mpnpm\x1b[m\n\x1b[36m│\x1b[m  \x1b[2m○\x1b[m \x1b[2mbun\x1b[m\n\x1b[36m└\x1b[m\n",
        "multiple_choice",
        ("npm (comes with node)", "pnpm", "bun"),
        {"bun": DOWN + DOWN + b"\r"},
    ),
    Invented(
        "clack password",
        f"{HIDE}\x1b[90m│\x1b[m\n\x1b[36m◆\x1b[m  Registry password\n\x1b[36m│\x1b[m  {lit('_')}\n\x1b[36m└\x1b[m\n",
        "free_text",
    ),
    Invented(
        "enquirer select",
        f"{HIDE}\x1b[36m?\x1b[m \x1b[1mPick a licence\x1b[m … \n\x1b[36m❯\x1b[m \x1b[36;4mMIT\x1b[m\n  Apache-2.0\n  GPL-3.0\n",
        "multiple_choice",
        ("MIT", "Apache-2.0", "GPL-3.0"),
        {"2": DOWN + b"\r"},
    ),
    Invented(
        "enquirer toggle",
        f"{HIDE}\x1b[36m?\x1b[m \x1b[1mWant telemetry?\x1b[m › \x1b[36;4mDisabled\x1b[m / Enabled",
        "multiple_choice",
        ("Disabled", "Enabled"),
    ),
    Invented(
        "enquirer survey",
        f"{HIDE}? How was it? … \n❯ The interface: \n  1    2    3    4    5\n  ◯────◯────◉────◯────◯\n  The speed: \n  ◯────◯────◯────◯────◯\n",
        LOOK,
    ),
    Invented("prompts text", f"{HIDE}\x1b[36m?\x1b[m \x1b[1mPackage name\x1b[m › \x1b[90mmy-app\x1b[m", "free_text"),
    Invented(
        "inquirer expand",
        "\x1b[32m?\x1b[m \x1b[1mConflict on `file.js`\x1b[m (yadxH) ",
        "multiple_choice",
        ("y", "a", "d", "x", "h"),
        {},
        unsure=True,
    ),
    Invented("inquirer confirm", "\x1b[32m?\x1b[m \x1b[1mIs this for delivery?\x1b[m (y/N) ", "yes_no"),
    Invented(
        "ink select",
        f"{HIDE}Deploy where?\n\n\x1b[34m❯\x1b[m \x1b[34mStaging\x1b[m\n  Production\n  Nowhere\n",
        "multiple_choice",
        ("Staging", "Production", "Nowhere"),
        {"2": DOWN + b"\r"},
        TICKING,
    ),
    Invented(
        "ink several",
        f"{HIDE}Run which checks?\n\n\x1b[34m❯\x1b[m ◯ lint\n  \x1b[32m◉\x1b[m test\n  ◯ types\n\n{grey('Space to select, Enter to submit')}\n",
        "multiple_choice",
        ("lint", "test", "types"),
        {},
        TICKING,
    ),
    Invented(
        "ink permission",
        f"{HIDE}╭{'─' * 60}╮\n│ {'Run `rm -rf build`?':<59}│\n│ {'':<59}│\n│ \x1b[34m❯ Allow\x1b[m{'':<52}│\n│ {'  Allow for this session':<59}│\n│ {'  Deny':<59}│\n╰{'─' * 60}╯\n",
        "multiple_choice",
        ("Allow", "Allow for this session", "Deny"),
        {"y": b"\r", "n": DOWN + DOWN + b"\r"},
        TICKING,
    ),
    Invented(
        "blessed question",
        FULL
        + f"\n\n     ┌{'─' * 30}┐\n     │ {'Quit without saving?':<29}│\n     │{'':<30}│\n     │  {lit(' Okay ')}   Cancel {'':<11}│\n     └{'─' * 30}┘\n",
        "multiple_choice",
        ("Okay", "Cancel"),
        {"n": RIGHT + b"\r"},
        TICKING,
        unsure=True,
    ),
    Invented(
        "blessed list",
        FULL
        + f"┌─ Branch {'─' * 20}┐\n│{lit(' main                        ')}│\n│ develop                     │\n│ release                     │\n└{'─' * 29}┘\n",
        "multiple_choice",
        ("main", "develop", "release"),
        {"2": DOWN + b"\r"},
        TICKING,
        unsure=True,
    ),
    Invented("npm init", "package name: (my-app) ", "free_text", probe=READING),
)

PYTHON = (
    Invented(
        "questionary several",
        f"{HIDE}? Select toppings (Use arrow keys to move, <space> to select, <a> to toggle, <i> to invert)\n » ○ Cheese\n   ● Ham\n   ○ Olives\n",
        "multiple_choice",
        ("Cheese", "Ham", "Olives"),
        size=(110, 24),
    ),
    Invented(
        "questionary raw select",
        f"{HIDE}? What now? (Use shortcuts or arrow keys)\n » 1) Order a pizza\n   2) Make a reservation\n",
        "multiple_choice",
        ("Order a pizza", "Make a reservation"),
    ),
    Invented(
        "inquirerpy fuzzy",
        f"? Choose: pi\n  3/10 {'─' * 40}\n{blue('❯ pizza')}\n  pie\n  pirog\x1b[4A\x1b[13G",
        "multiple_choice",
        ("pizza", "pie", "pirog"),
        {},
        unsure=True,
    ),
    Invented(
        "prompt_toolkit toolbar",
        "Say something: \x1b[24;1H\x1b[7m Press Meta+Enter to send            \x1b[m\x1b[1;16H",
        "free_text",
        unsure=True,
    ),
    Invented(
        "rich prompt",
        "Choose your fruit [apple/banana/cherry] (apple): ",
        "multiple_choice",
        ("apple", "banana", "cherry"),
        {"cherry": b"cherry\r"},
        READING,
    ),
    Invented("click confirm", "Do you want to drop the table? [y/N]: ", "yes_no", (), {"y": b"y\r"}, READING),
    Invented(
        "textual tree",
        FULL + " Header\n▼ 📂 src\n├── ▶ 📁 core\n├── " + lit("📄 main.py") + "\n└── 📄 util.py\n\n ^q Quit",
        LOOK,
        (),
        {},
        TICKING,
    ),
    Invented(
        "textual radio",
        FULL + " Pick a colour\n▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔\n \x1b[7m▐●▌ Red\x1b[m\n ▐●▌ Green\n ▐●▌ Blue\n▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁\n",
        LOOK,
        (),
        {},
        TICKING,
    ),
    Invented(
        "asciimatics form",
        FULL
        + f"┌{'─' * 50}┐\n│ Contact details{'':<34}│\n│{'':<50}│\n│ Name    : \x1b[7mAda                 \x1b[m{'':<19}│\n│ Phone   :{'':<40}│\n│ Email   :{'':<40}│\n│{'':<50}│\n│ < OK >      < Cancel >{'':<27}│\n└{'─' * 50}┘\n",
        "free_text",
        (),
        {},
        TICKING,
        unsure=True,
    ),
    Invented(
        "urwid form",
        FULL
        + "  New user\n\n  Login:    \x1b[44mada       \x1b[m\n  Shell:    \x1b[40m/bin/bash \x1b[m\n  Group:    \x1b[40mstaff     \x1b[m\n\n  [ Save ]  [ Cancel ]\n",
        "free_text",
        (),
        {},
        TICKING,
        unsure=True,
    ),
)

LIBRARIES = (  # as these draw it, found by running them
    Invented(
        "asciimatics form with a box",
        FULL
        + f"┌{'─' * 24} Contact {'─' * 25}┐\n│\x1b[32;44mName:\x1b[m  \x1b[46mAda{'':<48}\x1b[m│\n│\x1b[32;44mPhone:\x1b[m \x1b[37;44m{'':<51}\x1b[m█\n│\x1b[32;44mNews:\x1b[m  \x1b[33;44m[ ] Send news\x1b[m{'':<38}░\n│\x1b[37;44m           < OK >                     < Cancel >          \x1b[m│\n└{'─' * 58}┘\n",
        LOOK,
    ),
    Invented(
        "a basket that an arrow fills",
        "? Which:  [filter: type | move: ↑↓ | pick: → all: →→ | unpick: ← all: ←←]\n> [ ] red\n  [ ] green\n  [ ] blue\x1b[1;10H",
        LOOK,
    ),
    Invented("a form in lines", "? User: [filter: type | move: ↑↓ | edit: <Tab>]\n> name: \n   age: 0\x1b[2;9H", LOOK),
    Invented(
        "a list below a line to filter it",
        "? Pick:  [filter: type | move: ↑↓]\n> red\n  green\n  blue\x1b[1;9H",
        "multiple_choice",
        ("red", "green", "blue"),
        {"blue": DOWN + DOWN + b"\r"},
    ),
    Invented(
        "a yes above a no",
        f"{HIDE}Really delete? (Y/N)\n  Yes\n> No\n\n(enter to confirm)",
        "multiple_choice",
        ("Yes", "No"),
        {"y": UP + b"\r", "n": b"\r"},
    ),
    Invented(
        "buttons without brackets",
        f"{HIDE}\n   ┌{'─' * 20}┐\n   │ Delete everything? │\n   │{'':<20}│\n   │    OK     {lit('Cancel')}   │\n   └{'─' * 20}┘",
        "multiple_choice",
        ("OK", "Cancel"),
        {"n": b"\r"},
    ),
)

SHELLS = (
    Invented(
        "terraform",
        "Do you want to perform these actions?\n  Terraform will perform the actions described above.\n  Only 'yes' will be accepted to approve.\n\n  Enter a value: ",
        "yes_no",
        (),
        {"y": b"yes\r", "n": b"no\r"},
        READING,
    ),
    Invented(
        "gh auth",
        f"{HIDE}\x1b[32m?\x1b[m \x1b[1mWhere do you use GitHub?\x1b[m  \x1b[36m[Use arrows to move, type to filter]\x1b[m\n\x1b[36m> GitHub.com\x1b[m\n  Other\n",
        "multiple_choice",
        ("GitHub.com", "Other"),
    ),
    Invented(
        "spectre",
        f"{HIDE}What's your favorite fruit?\n\n\x1b[94m> Apple\x1b[m\n  Apricot\n  Avocado\n\n{grey('(Move up and down to reveal more fruits)')}\n",
        "multiple_choice",
        ("Apple", "Apricot", "Avocado"),
    ),
    Invented(
        "powershell",
        'Confirm\nAre you sure you want to perform this action?\n[Y] Yes  [A] Yes to All  [N] No  [L] No to All  [S] Suspend  [?] Help (default is "Y"): ',
        "multiple_choice",
        ("Yes", "Yes to All", "No", "No to All", "Suspend"),
        {"y": b"Y\r", "n": b"N\r"},
        READING,
        unsure=True,
    ),
    Invented(
        "gcloud list",
        "Please choose the region:\n [1] asia-east1\n [2] europe-west1\n [3] cancel\nPlease enter numeric choice or text value (must exactly match list item):  ",
        "multiple_choice",
        ("asia-east1", "europe-west1", "cancel"),
        {"2": b"2\r"},
        READING,
    ),
    Invented("aws configure", "AWS Secret Access Key [None]: ", "free_text", (), {}, READING),
    Invented("tmux confirm", FULL + "\x1b[24;1H\x1b[43;30mkill-session work? (y/n) \x1b[m\x1b[?25h", "yes_no"),
    Invented(
        "one key in brackets",
        "Reboot now? [y]es, [n]o, [l]ater ",
        "multiple_choice",
        ("[y]es", "[n]o", "[l]ater"),
        {"n": b"n"},
        ONE_KEY,
    ),
    Invented(
        "bash select",
        "1) tar.gz\n2) tar.xz\n3) zip\nFormat? ",
        "multiple_choice",
        ("tar.gz", "zip"),
        {"3": b"3\r"},
        READING,
    ),
)

ABROAD = (
    Invented(
        "dialog in German",
        FULL
        + f"┌{'─' * 40}┐\n│ {'Das Paket jetzt entfernen?':<39}│\n│{'':<40}│\n├{'─' * 40}┤\n│       {lit('< Ja  >')}      <Nein >{'':<12}│\n└{'─' * 40}┘\n",
        "multiple_choice",
        ("Ja", "Nein"),
        {"j": b"\r", "nein": RIGHT + b"\r"},
    ),
    Invented(
        "dialog in Russian",
        FULL
        + f"┌{'─' * 40}┐\n│ {'Удалить базу данных?':<39}│\n│{'':<40}│\n├{'─' * 40}┤\n│       {lit('< Да  >')}      <Нет >{'':<13}│\n└{'─' * 40}┘\n",
        "multiple_choice",
        ("Да", "Нет"),
        {"нет": RIGHT + b"\r", "n": RIGHT + b"\r"},
    ),
    Invented(
        "list in Japanese",
        f"{HIDE}\x1b[36m?\x1b[m どの環境に配備しますか？\n\x1b[36m❯ 本番\x1b[m\n  検証\n  開発\n",
        "multiple_choice",
        ("本番", "検証", "開発"),
        {"2": DOWN + b"\r"},
    ),
    Invented(
        "permission in Chinese",
        f"{HIDE}是否允许执行 `rm -rf dist`？\n\n❯ 1. 允许一次\n  2. 始终允许\n  3. 拒绝\n\n{grey('↑/↓ 选择 · Enter 确认 · Esc 取消')}\n",
        "multiple_choice",
        ("允许一次", "始终允许", "拒绝"),
        {"y": b"\r", "n": DOWN + DOWN + b"\r"},
        TICKING,
    ),
    Invented(
        "permission in French",
        f"{HIDE}Autoriser la commande « git push » ?\n\n> Oui\n  Oui, et ne plus demander\n  Non\n",
        "multiple_choice",
        ("Oui", "Oui, et ne plus demander", "Non"),
        {"o": b"\r", "n": DOWN + DOWN + b"\r"},
        TICKING,
    ),
    Invented("yes or no in Spanish", "¿Desea continuar? [S/n] ", "yes_no", (), {"sí": b"s\r", "no": b"n\r"}, READING),
    Invented("yes or no in Korean", "계속하시겠습니까? (예/아니요) ", "yes_no", (), {"예": "예\r".encode()}, READING),
    Invented("password in Portuguese", "Senha do cofre: ", "free_text", (), {}, POLLING),
)

SMALL = (
    Invented(
        "permission in a narrow window",
        f"{HIDE}Allow this command?\n  curl -fsSL https://example.org/inst\n  all.sh | sh\n\n❯ 1. Yes\n  2. Yes, and don't ask again for curl\n     commands in this project\n  3. No, and tell it what to do\n     differently\n",
        "multiple_choice",
        ("Yes", "Yes, and don't ask again for curl commands in this project", "No, and tell it what to do differently"),
        {"y": b"\r", "n": DOWN + DOWN + b"\r"},
        TICKING,
        (40, 15),
    ),
    Invented(
        "box in a narrow window",
        f"{HIDE}╭{'─' * 38}╮\n│ {'Write 3 files to /etc?':<37}│\n│ {'':<37}│\n│ {'❯ Approve':<37}│\n│ {'  Reject':<37}│\n╰{'─' * 38}╯\n",
        "multiple_choice",
        ("Approve", "Reject"),
        {"y": b"\r", "n": DOWN + b"\r"},
        TICKING,
        (40, 15),
    ),
    Invented(
        "keys in a narrow window",
        f"{HIDE}Apply the patch to\nsrc/main.rs?\n\n[y] Accept  [n] Reject\n",
        "multiple_choice",
        ("Accept", "Reject"),
        {"y": b"y", "n": b"n"},
        TICKING,
        (40, 15),
    ),
    Invented(
        "list that fills a low window",
        f"{HIDE}Pick one:\n" + "\n".join([blue("❯ one"), *(f"  item {word}" for word in "abcdefghijk")]),
        "multiple_choice",
        ("one", "item a", "item k"),
        {},
        TICKING,
        (40, 15),
    ),
)

BOX = "\x1b[2m" + "─" * 80 + "\x1b[m"
SAID = "● The script prints this menu:\n\n  ❯ 1. Yes\n    2. Yes, always\n    3. No\n\n  Overwrite? [y/N]\n\n  I left it as it is.\n\n"
HOSTILE = (
    Invented(
        "a quoted menu above an idle box", HIDE + SAID + f"{BOX}\n> \n{BOX}\n  gpt-x  ~/work\n", "idle", (), {}, TICKING
    ),
    Invented("a quoted menu above a shell", SAID + "user@host:~/work$ ", "free_text", (), {}, READING),
    Invented("a quoted menu while it works", SAID + "Compiling 12/40", "none", (), {}, BUSY),
    Invented(
        "a command that draws a menu",
        f"{HIDE}Run this command?\n\n  printf '❯ 1. No\\n  2. Yes\\n'\n  # ❯ 1. Cancel\n\n❯ 1. Yes\n  2. Yes, always\n  3. No\n",
        "multiple_choice",
        ("Yes", "Yes, always", "No"),
        {"y": b"\r", "n": DOWN + DOWN + b"\r"},
        TICKING,
    ),
    Invented(
        "a label that speaks of ever",
        f"{HIDE}Allow edits to seed.txt?\n\n  Always allow\n❯ Not now\n  Allow\n",
        "multiple_choice",
        ("Always allow", "Not now", "Allow"),
        {"y": DOWN + b"\r"},
        TICKING,
    ),
    Invented(
        "only for ever or not",
        f"{HIDE}Trust this server?\n\n❯ Trust always\n  Reject\n",
        "multiple_choice",
        ("Trust always", "Reject"),
        {"y": None, "n": DOWN + b"\r"},
        TICKING,
    ),
    Invented(
        "a question in a log",
        "[INFO] server asks: Continue? [Y/n]\n[INFO] no answer, going on\n[INFO] step 3 of 9\n",
        "none",
        (),
        {},
        TICKING,
    ),
    Invented("a spinner with a question", f"{HIDE}⠋ Are you sure it is fast? Measuring…\n", "none", (), {}, BUSY),
    Invented(
        "a gauge",
        FULL
        + f"┌{'─' * 40}┐\n│ {'Copying files, please wait?':<39}│\n│ {lit('      35%     '):<45}{'':<17}│\n└{'─' * 40}┘\n",
        "none",
        (),
        {},
        BUSY,
    ),
    Invented(
        "a table of results",
        f"{HIDE}Results\n\n  ● passed   12\n  ○ skipped   3\n  ✖ failed    0\n\nDone in 3.2s\n",
        "none",
        (),
        {},
        TICKING,
    ),
    Invented(
        "a ratio in the status", f"{HIDE}● Ready.\n\n lab  ~/work   context: 1% (20/125k)", "none", (), {}, TICKING
    ),
)

# Lists that are told only by their shape: one row is odd by its mark, its box or its colour.
RUN = ("Yes, run it", "Yes, and stop asking here", "No, tell the agent what to change")
SHAPES = (
    Invented(
        "marks with a description below each",
        f"{HIDE}How should the agent work here?\n\n● \x1b[1mPlan first\x1b[m\n  {grey('it shows what it would do')}\n"
        f"○ Edit directly\n  {grey('files change at once')}\n○ Ask every time\n  {grey('you confirm every change')}\n\n"
        f"{grey('use j/k or arrows, enter to pick')}\n",
        "multiple_choice",
        ("Plan first", "Edit directly", "Ask every time"),
        {"Ask every time": DOWN + DOWN + b"\r"},
        RAW,
    ),
    Invented(
        "a mark that no library uses, and a foot that says what Enter does",
        f"{HIDE}Which environment?\n🢧 dev\n  stage\n  prod\n(enter to confirm)\n",
        "multiple_choice",
        ("dev", "stage", "prod"),
        {"prod": DOWN + DOWN + b"\r", "production, please": None},
        RAW,
    ),
    Invented(
        "a box around each option",
        f"{HIDE}Edit src/app.ts?\n"
        + "".join(
            f"{'╔╭'[at > 0]}{'═─'[at > 0] * 40}{'╗╮'[at > 0]}\n{'║│'[at > 0]} {label:<39}{'║│'[at > 0]}\n"
            f"{'╚╰'[at > 0]}{'═─'[at > 0] * 40}{'╝╯'[at > 0]}\n"
            for at, label in enumerate(RUN)
        ),
        "multiple_choice",
        RUN,
        {"n": DOWN + DOWN + b"\r"},
        RAW,
    ),
    Invented(
        "two blank rows between options",
        f"{HIDE}  Allow the tool to write /etc/hosts?\n\n\n{blue('  ▶ ' + RUN[0])}\n\n\n    {RUN[1]}\n\n\n    {RUN[2]}\n\n\n",
        "multiple_choice",
        RUN,
        {"n": DOWN + DOWN + b"\r"},
        RAW,
    ),
    Invented(
        "options in two columns",
        f"{HIDE}Which branch shall I merge into?\n\n {lit('main')}          feature\n develop       hotfix\n release       next\n",
        "multiple_choice",
        ("main", "feature", "develop", "hotfix", "release", "next"),
        {"hotfix": RIGHT + DOWN + b"\r", "release": DOWN + DOWN + b"\r"},
        RAW,
    ),
    Invented(
        "only a colour tells",
        f"{HIDE}The plan is ready. What next?\n\n  \x1b[35mContinue\x1b[m\n  Change the plan\n  Stop here\n",
        "multiple_choice",
        ("Continue", "Change the plan", "Stop here"),
        {"Stop here": DOWN + DOWN + b"\r"},
        RAW,
    ),
    Invented(
        "digits in circles",
        f"{HIDE}Conflict in README.md. What shall I do?\n\n  ①  Keep mine\n  ②  Take theirs\n  ③  Merge by hand\n\nPress 1, 2 or 3\n",
        "multiple_choice",
        ("Keep mine", "Take theirs", "Merge by hand"),
        {"Take theirs": b"2\r"},
        RAW,
    ),
    Invented(
        "a filter above a list with stars",
        "Fruit: \n* apple\n  banana\n  cherry\n",
        "multiple_choice",
        ("apple", "banana", "cherry"),
        {"cherry": DOWN + DOWN + b"\r"},
        RAW,
    ),
    Invented(
        "radio marks in parentheses",
        f"{HIDE}? Enable telemetry?   ( ) on   (•) off\n",
        "multiple_choice",
        ("on", "off"),
        {"on": LEFT + b"\r", "y": None},
        RAW,
    ),
    Invented(
        "three words after the question",
        f"{HIDE}Allow it to fetch https://example.com? › \x1b[4;36mYes\x1b[m · No · Always\n",
        "multiple_choice",
        ("Yes", "No", "Always"),
        {"n": RIGHT + b"\r"},
        RAW,
    ),
    Invented(
        "select of zsh",
        "1) one     2) two     3) three   \n?# ",
        "multiple_choice",
        ("one", "two", "three"),
        {"two": b"2\r"},
        POLLING,
    ),
    Invented(
        "a yes-or-no question that speaks of a secret",
        "This is a secret key! - really delete? (y/N) ",
        "yes_no",
        (),
        {"n": b"n\r"},
        RAW,
    ),
    Invented(
        "a value after a mark, up to the caret",
        f"{HIDE}Commit message (edit, then Enter):\n> WIP: fix{lit(' ')}\n",
        "free_text",
        (),
        {"Fix the parser": b"\x7f" * 8 + b"Fix the parser\r"},
        RAW,
    ),
    Invented(
        "a value after a mark in a line editor",
        "> old.txt",
        "free_text",
        (),
        {"new.txt": b"\x7f" * 7 + b"new.txt\r"},
        RAW,
    ),
    Invented(
        "a field that Enter does not finish",
        "? Notes  (Finish with 'Alt+Enter' or 'Esc then Enter')\n> ",
        "free_text",
        (),
        {"one line": b"one line\x1b\r"},
        RAW,
    ),
    Invented(
        "a tree is not walked",
        f"{HIDE}Pick the file to add\n{lit('├─ src/')}\n│  ├─ app.py\n│  └─ util.py\n└─ tests/\n{grey('enter: add  q: cancel')}\n",
        LOOK,
        probe=RAW,
    ),
)

ALL = (*GO, *RUST, *NODE, *PYTHON, *LIBRARIES, *SHELLS, *ABROAD, *SMALL, *HOSTILE, *SHAPES)
