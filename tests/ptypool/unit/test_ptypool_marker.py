"""The marker protocol finds a command's output in any chunking, whatever that output holds."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from ptypool.session import MarkerScanner, begin_marker, end_marker

NONCE = "0123456789abcdef"
HOSTILE = st.lists(
    st.sampled_from([b"\x1e", b"E", b"B", b"\x1eE" + NONCE.encode(), b" 0", b"\x1eE", NONCE.encode(), b"\n", b"x"])
).map(b"".join)


def scan(stream: bytes, cuts: list[int]) -> tuple[bytes, int | None]:
    scanner = MarkerScanner(NONCE)
    edges = [0, *sorted({cut % (len(stream) + 1) for cut in cuts}), len(stream)]
    output = b""
    for start, stop in itertools.pairwise(edges):
        scanned = scanner.feed(stream[start:stop])
        output += scanned.output
        if scanned.exit_status is not None:
            return output, scanned.exit_status
    return output + scanner.rest(), None


@given(st.binary() | HOSTILE, st.integers(0, 255), st.lists(st.integers(0, 10_000)))
def test_any_output_in_any_chunking_comes_out_whole(output: bytes, status: int, cuts: list[int]) -> None:
    whole = scan(b"prompt " + begin_marker(NONCE) + output + end_marker(NONCE, status), [])
    if end_marker(NONCE, 0)[:-2] not in output:  # a finished marker of our own secret nonce cannot be told apart
        assert whole == (output, status)
    assert scan(b"prompt " + begin_marker(NONCE) + output + end_marker(NONCE, status), cuts) == whole


@given(st.binary() | HOSTILE, st.lists(st.integers(0, 10_000)))
def test_a_stream_that_ends_without_a_marker_loses_nothing(output: bytes, cuts: list[int]) -> None:
    stream = begin_marker(NONCE) + output
    if end_marker(NONCE, 0)[:-2] not in output:
        assert scan(stream, cuts) == (output, None)


def test_what_comes_before_the_begin_marker_is_not_output() -> None:
    assert scan(b"$ echo\r\n" + begin_marker(NONCE) + b"x" + end_marker(NONCE, 3), []) == (b"x", 3)


def test_a_marker_of_another_command_is_output() -> None:
    other = end_marker("fedcba9876543210", 0)
    assert scan(begin_marker(NONCE) + other + end_marker(NONCE, 1), []) == (other, 1)


def test_an_end_without_a_begin_is_the_end_with_no_output() -> None:
    assert scan(b"noise" + end_marker(NONCE, 0), []) == (b"", 0)


def test_a_shell_that_prints_its_input_does_not_print_a_marker() -> None:
    echoed = f" __ptypool_begin {NONCE} 0; . command\n".encode()
    assert scan(echoed + begin_marker(NONCE) + echoed + end_marker(NONCE, 0), []) == (echoed, 0)
