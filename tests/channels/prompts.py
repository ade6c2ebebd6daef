"""One prompt of every kind, as detectors raise them, for the channel tests."""

from __future__ import annotations

from atlasbridge.core.prompt.model import Choice, Prompt, PromptType

SCREEN = "\n".join(f"line {number}" for number in range(1, 13))
YES_NO = Prompt(PromptType.TYPE_YES_NO, 0.95, "Continue? (y/n)", screen=SCREEN, safe_default="n")
ENTER = Prompt(PromptType.TYPE_CONFIRM_ENTER, 0.9, "Press Enter to continue", safe_default="enter")
MENU = Prompt(
    PromptType.TYPE_MULTIPLE_CHOICE,
    0.97,
    "Do you want to run this command?\n  rm -rf build",
    screen=SCREEN,
    choices=(
        Choice("1", "Yes"),
        Choice("2", "Yes, and don't ask again for rm", always=True),
        Choice("3", "No, tell Claude what to do differently", refuses=True),
    ),
    constraints={"allows_other": True},
    safe_default="3",
)
TEXT = Prompt(PromptType.TYPE_FREE_TEXT, 0.8, "Enter name (max 20 chars):", constraints={"max_length": 20})
IDLE = Prompt(PromptType.TYPE_FREE_TEXT, 0.9, "> ", constraints={"idle": True})
SECRET = Prompt(PromptType.TYPE_FREE_TEXT, 0.95, "Password:", constraints={"secret": True})
UNKNOWN = Prompt(PromptType.TYPE_UNKNOWN, 0.5, "(END)", screen=SCREEN)
HOSTILE = Prompt(
    PromptType.TYPE_YES_NO,
    0.9,
    "\x1b[31mred\u202egnp.exe *bold* _x_ <b>html</b> [link](http://x) `code` \u200b😀",
    safe_default="n",
)
LONG = Prompt(PromptType.TYPE_UNKNOWN, 0.5, "flood", screen="x" * 9000)
MULTI = Prompt(
    PromptType.TYPE_MULTIPLE_CHOICE,
    0.9,
    "Pick some",
    choices=(Choice("1", "eggs"), Choice("2", "milk"), Choice("3", "tea")),
    constraints={"multi_select": True},
)
MANY = Prompt(
    PromptType.TYPE_MULTIPLE_CHOICE,
    0.9,
    "Which one?",
    choices=tuple(Choice(f"a value that is far too long for a button {n}", "label " * 30) for n in range(1, 10)),
)
EVERY = {
    "yes_no": YES_NO,
    "enter": ENTER,
    "menu": MENU,
    "text": TEXT,
    "idle": IDLE,
    "secret": SECRET,
    "unknown": UNKNOWN,
    "hostile": HOSTILE,
    "long": LONG,
    "multi": MULTI,
    "many": MANY,
}
