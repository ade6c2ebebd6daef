"""The scenarios of the specification, QA-001 to QA-009 and QA-018 to QA-020, each performed by a small real program."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import ClassVar

from atlasbridge.lab.scenario import (
    BasePromptLabScenario,
    DetectorResult,
    Elsewhere,
    check,
    register,
    register_elsewhere,
)

PYTHON = sys.executable
_PRELUDE = "import sys, time\nsay = lambda text: (sys.stdout.write(text), sys.stdout.flush())\n"


def program(code: str) -> list[str]:
    """A child that runs `code`; `say(text)` writes without a newline, `ask()` reads a line."""
    return [PYTHON, "-c", _PRELUDE + "ask = lambda: sys.stdin.readline().rstrip('\\n')\n" + code]


def memory_of_this_process() -> int:
    """The resident memory in bytes; if the system does not tell, the peak."""
    if sys.platform == "linux":
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    import resource  # not available on Windows, where this scenario is left out

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@register
class PartialLinePromptScenario(BasePromptLabScenario):
    qa_id = "QA-001"
    description = "Prompt arrives as two separate chunks; detector must not fire on first chunk alone"

    async def run(self) -> None:
        self.terminal.start(program("say('Do you want to con'); time.sleep(0.4); say('tinue? [Y/n] '); ask()"))
        await self.terminal.until_raised()

    async def assert_behavior(self, result: DetectorResult) -> None:
        check(len(result.raised) == 1, f"one prompt, not {len(result.raised)}")
        check("Do you want to continue? [Y/n]" in result.last.excerpt, f"the whole line, not {result.last.excerpt!r}")
        check(result.last.type.value == "yes_no", f"yes_no, not {result.last.type.value}")


@register
class ANSIRedrawScenario(BasePromptLabScenario):
    qa_id = "QA-002"
    description = "Prompt is preceded by a full-screen ANSI redraw; ANSI must be stripped before matching"

    async def run(self) -> None:
        drawing = r"say('\x1b[?1049h\x1b[2J\x1b[H\x1b[44m' + 'x' * 400 + '\x1b[0m\x1b[2J\x1b[H\x1b[?1049l')"
        asking = r"say('\x1b[1;33mOverwrite\x1b[0m \x1b[4mmain.py\x1b[24m? \x1b[2m(y/n)\x1b[0m '); ask()"
        self.terminal.start(program(f"{drawing}\n{asking}"))
        await self.terminal.until_raised()

    async def assert_behavior(self, result: DetectorResult) -> None:
        check(result.last.excerpt == "Overwrite main.py? (y/n)", f"plain text, not {result.last.excerpt!r}")
        check("\x1b" not in result.last.screen, "no escape sequence leaves the screen")


@register
class OverwrittenPromptScenario(BasePromptLabScenario):
    qa_id = "QA-003"
    description = "Prompt text is overwritten via carriage return before the final prompt appears"

    async def run(self) -> None:
        first = r"say('Delete everything? [y/N] '); time.sleep(0.3); say('\r\x1b[K')"
        self.terminal.start(program(first + "; say('Keep a backup? [y/N] '); ask()"))
        await self.terminal.until_raised()

    async def assert_behavior(self, result: DetectorResult) -> None:
        check(len(result.raised) == 1, f"only what stands there is raised, not {len(result.raised)} prompts")
        check("Keep a backup?" in result.last.excerpt, f"the last text, not {result.last.excerpt!r}")
        check("Delete" not in result.last.excerpt, "what was overwritten is gone")


@register
class SilentBlockScenario(BasePromptLabScenario):
    qa_id = "QA-004"
    description = "Process writes nothing; only the stall_watchdog can detect the block"
    blind_within_s = 4.5  # a little longer without any output, because most silent programs are working

    async def run(self) -> None:
        self.terminal.start(program("ask()") if sys.platform == "win32" else ["sh", "-c", "read line"])
        await self.terminal.until_raised()

    async def assert_behavior(self, result: DetectorResult) -> None:
        check(len(result.raised) == 1, "a program that reads in silence is waiting")
        signals = {item.signal for item in result.last.evidence}
        expected = "silence" if self.terminal.blind else "probe"
        check(expected in signals, f"seen by the {expected}, not by {signals}")
        check(result.last.type.value == "unknown", "nobody can tell: the person decides what it is")
        if self.terminal.blind:
            check(result.last.confidence.value == "low", f"no more than a guess: {result.last.confidence.value}")


@register
class NestedPromptsScenario(BasePromptLabScenario):
    qa_id = "QA-005"
    description = "Two prompts arrive in rapid succession before the first is answered"

    async def run(self) -> None:
        self.terminal.start(
            program("say('First? [y/n] '); say('\\nSecond? [y/n] '); a = ask(); say('Third? [y/n] '); ask()")
        )
        await self.terminal.until_raised()
        self.terminal.answer("y")
        await self.terminal.until_raised(2)

    async def assert_behavior(self, result: DetectorResult) -> None:
        check(
            [prompt.excerpt.split("\n")[-1] for prompt in result.raised] == ["Second? [y/n]", "Third? [y/n]"],
            "the one that is read is asked",
        )
        check(result.withdrawn == ["answered"], f"one answer, one end: {result.withdrawn}")


@register
class MultipleChoiceScenario(BasePromptLabScenario):
    qa_id = "QA-006"
    description = "Numbered list `1) ... 2) ... 3) ...` with `Enter choice [1-3]:`"

    async def run(self) -> None:
        listed = r"say('1) Light\n2) Dark\n3) Solarized\nEnter choice [1-3]: '); print('chose', ask())"
        self.terminal.start(program(listed))
        await self.terminal.until_raised()
        self.terminal.answer("Dark")
        await self.terminal.until_shown("chose 2")

    async def assert_behavior(self, result: DetectorResult) -> None:
        prompt = result.raised[0]
        check(prompt.type.value == "multiple_choice", f"multiple_choice, not {prompt.type.value}")
        check([choice.label for choice in prompt.choices] == ["Light", "Dark", "Solarized"], "all labels, in order")


@register
class YesNoVariantsScenario(BasePromptLabScenario):
    qa_id = "QA-007"
    description = "Multiple phrasings: `(y/n)`, `[Y/n]`, `yes/no`, `y or n`"
    variants = ("Proceed? (y/n) ", "Proceed? [Y/n] ", "Proceed (yes/no)? ", "Proceed, y or n? ", "Press y to go on: ")

    async def run(self) -> None:
        self.terminal.start(program(f"for text in {self.variants!r}:\n  say(text); ask()"))
        for number in range(1, len(self.variants) + 1):
            await self.terminal.until_raised(number)
            self.terminal.answer("n")
        await self.terminal.until_ended()

    async def assert_behavior(self, result: DetectorResult) -> None:
        kinds = [prompt.type.value for prompt in result.raised]
        check(kinds == ["yes_no"] * len(self.variants), f"all of them are yes_no: {kinds}")
        check(all(prompt.safe_default == "n" for prompt in result.raised), "the safe default is n")


@register
class PressEnterScenario(BasePromptLabScenario):
    qa_id = "QA-008"
    description = "Exact phrase `Press Enter to continue` and variants"
    variants = (
        "Press Enter to continue",
        "[Press Enter]",
        "Hit ENTER to proceed...",
        "Press RETURN to start: ",
        "-- More --",
    )

    async def run(self) -> None:
        self.terminal.start(program(f"for text in {self.variants!r}:\n  say(text); ask()"))
        for number in range(1, len(self.variants) + 1):
            await self.terminal.until_raised(number)
            self.terminal.answer("enter")
        await self.terminal.until_ended()

    async def assert_behavior(self, result: DetectorResult) -> None:
        kinds = [prompt.type.value for prompt in result.raised]
        check(kinds == ["confirm_enter"] * len(self.variants), f"all of them want Enter: {kinds}")


@register
class FreeTextConstraintScenario(BasePromptLabScenario):
    qa_id = "QA-009"
    description = "Free text prompt with character limit hint: `Enter name (max 20 chars):`"

    async def run(self) -> None:
        self.terminal.start(program("say('Enter name (max 20 chars): '); print('hello', ask())"))
        await self.terminal.until_raised()
        self.terminal.answer("orion")
        await self.terminal.until_shown("hello orion")

    async def assert_behavior(self, result: DetectorResult) -> None:
        prompt = result.raised[0]
        check(prompt.type.value == "free_text", f"free_text, not {prompt.type.value}")
        check(prompt.constraints.get("max_length") == 20, f"the limit of 20: {dict(prompt.constraints)}")


@register
class OutputFloodScenario(BasePromptLabScenario):
    qa_id = "QA-018"
    description = "High-volume output (>1MB/s) followed by a prompt; detector must not degrade"
    megabytes = 5
    megabytes_per_s = 2
    sample_s = 0.5
    most_bytes = 50 * 1024 * 1024  # above the level before the flood

    async def run(self) -> None:
        """5 MB at 2 MB/s, and the memory of this process meanwhile."""
        flood = (
            "text = ('x' * 79 + '\\n') * 1311\nbegan = time.monotonic()\n"
            f"for piece in range({self.megabytes * 10}):\n"
            "    sys.stdout.write(text); sys.stdout.flush()\n"
            f"    time.sleep(max(0, began + piece / {self.megabytes_per_s * 10} - time.monotonic()))"
        )
        self.rss = [memory_of_this_process()]
        sampling = asyncio.create_task(self._sample())
        try:
            self.terminal.start(program(f"{flood}\nsay('Flooded. Continue? [y/N] '); ask()"))
            await self.terminal.until(
                lambda: bool(self.terminal.raised), "the prompt behind the flood is raised", 300.0
            )
        finally:
            sampling.cancel()

    async def _sample(self) -> None:
        while True:
            await asyncio.sleep(self.sample_s)
            self.rss.append(memory_of_this_process())

    async def assert_behavior(self, result: DetectorResult) -> None:
        check(self.terminal.read_bytes > self.megabytes * 1024 * 1024, "the flood came through")
        check(len(result.raised) == 1, f"one prompt, and none in the flood: {len(result.raised)}")
        check("Continue? [y/N]" in result.last.excerpt, result.last.excerpt)
        check(len(result.last.raw) <= 16384, "memory stays bounded")
        grown = max(self.rss) - self.rss[0]
        check(len(self.rss) > 3, f"memory was sampled during the flood: {len(self.rss)} samples")
        check(grown < self.most_bytes, f"memory grows by less than 50 MB: {grown // 1024} KB")


@register
class EchoLoopScenario(BasePromptLabScenario):
    qa_id = "QA-019"
    description = "Injected reply is echoed back; detector must not re-fire on the echo"

    async def run(self) -> None:
        self.terminal.start(program("say('Name: '); n = ask(); print('you said', n); time.sleep(1.5); print('bye')"))
        await self.terminal.until_raised()
        self.terminal.answer("Overwrite it? [y/n]")
        await self.terminal.until_ended()

    async def assert_behavior(self, result: DetectorResult) -> None:
        check(len(result.raised) == 1, f"the echo is no prompt: {[prompt.excerpt for prompt in result.raised]}")
        check(result.withdrawn[:1] == ["answered"], f"the answer was taken: {result.withdrawn}")


@register
class ConPTYBaselineScenario(BasePromptLabScenario):
    """On Windows the real ConPTY backend runs it (tests/prompt_lab/test_qa_conpty.py). Elsewhere a program draws what a
    Windows console sends: mode switches first, a cleared screen, the title between two pieces of the line, and the
    whole line again after the answer."""

    qa_id = "QA-020"
    description = "A prompt on the Windows console is raised and answered"
    platform: ClassVar[list[str]] = ["windows", "macos", "linux"]

    async def run(self) -> None:
        opening = r"say('\x1b[?9001h\x1b[?1004h\x1b[?25l\x1b[2J\x1b[m\x1b[H\x1b]0;C:\\agent.exe\x07\x1b[?25h')"
        asking = r"say('Continue?\x1b[1C(y/n)\x1b[?25l\x1b[1;17H\x1b[?25h')"
        again = r"say('\x1b[?25l\x1b[HContinue?\x1b[1C(y/n) ' + a + '\r\ngot=' + a + '\x1b[K\r\n\x1b[?25h')"
        self.terminal.start(program(f"{opening}\n{asking}\na = ask()\n{again}\ntime.sleep(30)"))
        await self.terminal.until_raised()
        self.terminal.answer("y")
        await self.terminal.until_shown("got=y")

    async def assert_behavior(self, result: DetectorResult) -> None:
        check(result.raised[0].type.value == "yes_no", f"yes_no, not {result.raised[0].type.value}")
        check(result.raised[0].excerpt == "Continue? (y/n)", f"the line as it looks: {result.raised[0].excerpt!r}")


# Scenarios of the documents that need no terminal. The documents reserve QA-010 to QA-017 for channels and define those
# about Slack; the others are the same for Telegram.

SLACK = "tests/channels, against a strict fake of Slack; live with a test workspace in the release job"
SLACK_TESTS = "tests/channels/test_qa_slack.py"
TELEGRAM = "tests/channels, against a strict fake of Telegram"
TELEGRAM_TESTS = "tests/channels/test_telegram_channel.py"

for qa_id, name, description in (
    ("QA-010", "SlackMessageFormatScenario", "A prompt as a Slack message: header of ours, quoted excerpt, buttons"),
    ("QA-013", "SlackThreadReplyScenario", "Text in a thread answers the prompt of its message"),
    ("QA-014", "SlackMultiUserScenario", "The first valid reply wins; others are told who answered"),
    ("QA-015", "SlackRateLimitScenario", "A rate limit delays a message and loses none"),
):
    systems = ("macos", "linux", "windows")
    register_elsewhere(Elsewhere(qa_id, name, description, systems, SLACK, SLACK_TESTS, qa_id))
for qa_id, name, description in (
    ("QA-011", "TelegramMessageFormatScenario", "A prompt as a Telegram message: header, question, time left, buttons"),
    ("QA-012", "TelegramTextReplyScenario", "Text that replies to a message answers its prompt"),
    ("QA-016", "TelegramMultiUserScenario", "The first valid reply wins; others are told who answered"),
    ("QA-017", "TelegramRateLimitScenario", "More than ten callbacks a minute pause the session, with one warning"),
):
    register_elsewhere(Elsewhere(qa_id, name, description, systems, TELEGRAM, TELEGRAM_TESTS, qa_id))
