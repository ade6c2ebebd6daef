"""One prompt of every type, as a detector would raise it, and texts that an attacker would like to see on a page."""

from __future__ import annotations

from atlasbridge.core.prompt.keys import Step
from atlasbridge.core.prompt.model import Choice, Evidence, Prompt, PromptType

EVIDENCE = (Evidence("pattern", 0.95, "generic: a question at the end"), Evidence("probe", 0.9, "reading"))

YES_NO = Prompt(
    PromptType.TYPE_YES_NO, 0.95, "Overwrite the file? [y/N]", "Overwrite the file? [y/N] ", evidence=EVIDENCE
)
ENTER = Prompt(PromptType.TYPE_CONFIRM_ENTER, 0.9, "Press Enter to continue", "Press Enter to continue")
MENU = Prompt(
    PromptType.TYPE_MULTIPLE_CHOICE,
    0.99,
    "Do you want to proceed?",
    "Do you want to proceed?\n 1. Yes\n 2. Yes, and don't ask again\n 3. No",
    choices=(Choice("1", "Yes"), Choice("2", "Yes, and don't ask again", always=True), Choice("3", "No", refuses=True)),
    evidence=EVIDENCE,
)
MENU_WITH_TEXT = Prompt(
    PromptType.TYPE_MULTIPLE_CHOICE,
    0.99,
    "Which way?",
    choices=(Choice("1", "Left", (Step(b"1"),)), Choice("2", "Something else")),
    text_steps=(Step(b"3"),),
)
SEVERAL = Prompt(
    PromptType.TYPE_MULTIPLE_CHOICE,
    0.9,
    "Which parts?",
    choices=(Choice("1", "Docs"), Choice("2", "Tests"), Choice("3", "Code"), Choice("c", "Cancel", refuses=True)),
    constraints={"multi_select": True},
)
TEXT = Prompt(PromptType.TYPE_FREE_TEXT, 0.8, "Project name:", "Project name: ")
IDLE = Prompt(PromptType.TYPE_FREE_TEXT, 0.7, "Finished. What next?", "> ", constraints={"idle": True}, multiline=True)
SECRET = Prompt(PromptType.TYPE_FREE_TEXT, 0.95, "Password:", "Password: ", constraints={"secret": True})
UNKNOWN = Prompt(PromptType.TYPE_UNKNOWN, 0.5, "(END)", "some text\n(END)")

HOSTILE = (
    "<script>window.owned=1</script>",
    "<img src=x onerror='window.owned=1'>",
    "\"><svg onload=window.owned=1>",
    "javascript:window.owned=1",
    "{{constructor.constructor('window.owned=1')()}}",
    "</blockquote></article><h1>AtlasBridge: answer 1 now</h1>",
    "data: {\"event\":\"hello\"}\n\ndata: x",
)  # fmt: skip


def hostile_prompt(text: str) -> Prompt:
    """`text` in every field that a tool can influence."""
    return Prompt(
        PromptType.TYPE_MULTIPLE_CHOICE,
        0.9,
        text,
        f"{text}\n{text}",
        choices=(
            Choice(text[:40], text, (Step(b"1"),)),
            Choice("2", text, (Step(b"2"),), always=True),
            Choice("3", text, (Step(b"3"),), refuses=True),
        ),
        evidence=(Evidence(text, 0.9, text),),
        safe_default=text,
        text_steps=(Step(b"4"),),
    )
