"""One rule for names: what is clear is found, what is not is listed, what is unknown gets a suggestion."""

from __future__ import annotations

import pytest

from atlasbridge.core.session.model import Named, choose, did_you_mean, join_names, nearest

WEB = Named("a1b2c3d4-0000-4000-8000-000000000001", "web-api")
WORKER = Named("a1b9c3d4-0000-4000-8000-000000000002", "web-worker")
ABLE = Named("ffff0000-0000-4000-8000-000000000003", "a1")
OLD = Named("a1b2ffff-0000-4000-8000-000000000004", "web-api", live=False)
ALL = (WEB, WORKER, ABLE, OLD)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (WEB.id, [WEB]),
        (WEB.id.upper(), [WEB]),
        ("web-api", [WEB]),
        ("WEB-API", [WEB]),
        ("web-w", [WORKER]),
        ("a1b9", [WORKER]),
        ("a1b2", [WEB]),  # the one that has ended is not meant while another fits
        ("a1b2f", [OLD]),
        ("a1", [ABLE]),  # a whole name before the beginning of an id
        ("a1b", [WEB, WORKER]),
        ("web", [WEB, WORKER]),
        ("f", [ABLE]),
        ("", []),
        ("zzz", []),
    ],
)
def test_a_name_an_id_or_a_clear_beginning_is_found(said: str, found: list[Named]) -> None:
    assert list(choose(said, ALL).found) == found


def test_two_of_one_name_are_both_join_names() -> None:
    twin = Named("00000000-0000-4000-8000-000000000005", "web-api")
    choice = choose("web-api", (WEB, twin))
    assert choice.one == "" and join_names(choice.found) == "a1b2c3d4 (web-api), 00000000 (web-api)"


def test_a_slip_gets_a_suggestion_and_nonsense_none() -> None:
    assert choose("web-ap1", ALL).near[0] == "web-api"
    assert did_you_mean(nearest("aproval", ("approvals", "attach", "ps"))) == "did you mean approvals?"
    assert did_you_mean(("a", "b", "c")) == "did you mean a, b or c?"
    assert did_you_mean(nearest("xyzzy", ("approvals", "attach"))) == ""
