"""A screen comes to rest although a spinner turns beside the dialog; what is drawn once, or slowly, is waited for."""

from __future__ import annotations

from atlasbridge.core.host.typist import Rest
from atlasbridge.core.screen.screen import Screen


def turned(screen: Screen, rest: Rest, seconds: float, also: dict[int, bytes] | None = None) -> float:
    """A spinner that turns ten times a second for so long; what the rest says at the end."""
    lasts = 0.0
    for tick in range(int(seconds * 10)):
        screen.feed(b"\x1b[1;1H" + b"-\\|/"[tick % 4 : tick % 4 + 1] + (also or {}).get(tick, b""))
        lasts = rest.stable_s(screen, tick / 10)
    return lasts


def test_a_spinner_does_not_keep_a_screen_from_coming_to_rest() -> None:
    assert turned(Screen(5, 40), Rest(0.0), 1.5) >= 0.5


def test_a_screen_without_one_rests_from_its_last_change_on() -> None:
    screen, rest = Screen(5, 40), Rest(0.0)
    screen.feed(b"typed")
    assert rest.stable_s(screen, 0.2) == 0.0
    assert rest.stable_s(screen, 0.3) >= 0.09


def test_before_a_while_has_passed_everything_counts() -> None:
    assert turned(Screen(5, 40), Rest(0.0), 0.6) == 0.0


def test_what_is_drawn_beside_a_spinner_is_waited_for() -> None:
    assert turned(Screen(5, 40), Rest(0.0), 2.0, {19: b"\x1b[3;1Hanother dialog"}) == 0.0


def test_a_picture_of_dots_may_move_whenever_it_likes() -> None:
    screen, rest = Screen(5, 40), Rest(0.0)
    screen.feed("⡠⣒⠄ Vibe\x1b[5;1Htyped".encode())
    rest.stable_s(screen, 0.0)
    screen.feed("\x1b[1;1H⢠⢢⠄⠄ Vibe\x1b[5;6H".encode())
    assert rest.stable_s(screen, 0.4) == 0.4
    screen.feed(b" more")
    assert rest.stable_s(screen, 0.5) == 0.0


def test_a_cursor_that_blinks_in_colour_does_not_keep_a_screen_from_coming_to_rest() -> None:
    screen, rest = Screen(5, 40), Rest(0.0)
    lasts = 0.0
    for tick in range(20):
        screen.feed(b"\x1b[1;1H\x1b[7m \x1b[0m" if tick % 2 else b"\x1b[1;1H\x1b[0m \x1b[0m")
        lasts = rest.stable_s(screen, tick / 10)
    assert lasts >= 0.9
