"""Any chunking of the same bytes gives the same prompts, and no stream of bytes can raise or hang the detector."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.tier import examples

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.detection.events import Command, OutputReceived, ProbeAnswer, ProbeState, RaisePrompt, Resized
from atlasbridge.lab.replay import Player

SAMPLES = [
    b"Backup finished.\r\nPress any key to continue...",
    "ファイル? \x1b[1m[y/N]\x1b[0m ".encode(),
    b"\x1b[2J\x1b[H\x1b[31mWarning\x1b[0m\r\n1) a\r\n2) b\r\nEnter choice [1-2]: ",
    "\x1b[?1049h\x1b[H? Pick\r\n\x1b[36m❯ one\x1b[0m\r\n  two\r\n".encode(),
    b"Loading 10%\rLoading 90%\r\x1b[KDelete? (yes/no) ",
]
DIALECT = load_dialect("generic")
RAW = ProbeAnswer(ProbeState.READING, echo=False, canonical=False)


def prompts(chunks: list[bytes]) -> list[tuple[str, str, str]]:
    player = Player(Detector(DIALECT, 24, 80), RAW)
    heard: list[tuple[float, Command]] = []
    for chunk in chunks:
        heard += player.tell(OutputReceived(chunk), 100.0)
    heard += player.pass_time(102.0)
    return [
        (command.prompt.type.value, command.prompt.excerpt, command.prompt.digest)
        for _, command in heard
        if isinstance(command, RaisePrompt)
    ]


@given(st.sampled_from(SAMPLES), st.lists(st.integers(0, 80), max_size=12))
@settings(max_examples=examples(60), deadline=None)
def test_any_chunking_gives_the_same_prompts(sample: bytes, cuts: list[int]) -> None:
    places = sorted({min(cut, len(sample)) for cut in cuts} | {0, len(sample)})
    chunks = [sample[start:end] for start, end in pairwise(places)]
    assert prompts(chunks) == prompts([sample])
    assert len(prompts(chunks)) == 1


def test_byte_by_byte_is_a_chunking_too() -> None:
    for sample in SAMPLES:
        assert prompts([bytes([byte]) for byte in sample]) == prompts([sample])


@given(st.sampled_from(SAMPLES), st.lists(st.tuples(st.integers(2, 40), st.integers(4, 120)), max_size=4))
@settings(max_examples=examples(60), deadline=None)
def test_any_cut_around_a_change_of_size_gives_the_same_prompts(sample: bytes, sizes: list[tuple[int, int]]) -> None:
    def raised(chunks: list[bytes]) -> list[str]:
        player = Player(Detector(DIALECT, 24, 80), RAW)
        heard = [command for chunk in chunks for command in player.tell(OutputReceived(chunk), 100.0)]
        for number, size in enumerate(sizes):
            heard += player.tell(Resized(*size), 100.0 + number)
            heard += player.pass_time(100.9 + number)
        heard += player.pass_time(110.0)
        return [command.prompt.digest for _, command in heard if isinstance(command, RaisePrompt)]

    assert raised([bytes([byte]) for byte in sample]) == raised([sample])


@given(st.lists(st.binary(max_size=200), max_size=6))
@settings(max_examples=examples(60), deadline=None)
def test_no_bytes_can_raise_or_hang_the_detector(chunks: list[bytes]) -> None:
    player = Player(Detector(DIALECT, 10, 40), RAW)
    now = 100.0
    for chunk in chunks:
        list(player.tell(OutputReceived(chunk), now))
        now += 0.5
        list(player.pass_time(now))
    assert len(player.detector.explain()) >= 1


@given(st.text(alphabet="❯›>●○[]() 123.yYnN/?:│─┌┐└┘<>\nabc", max_size=300))
@settings(max_examples=examples(80), deadline=None)
def test_no_drawing_can_raise_or_hang_the_recognisers(text: str) -> None:
    assert len(prompts([text.replace("\n", "\r\n").encode()])) <= 1
