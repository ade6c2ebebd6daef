"""Value classes behave as the standard ones do, as far as they are used."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from atlasbridge.core.values import as_dict, field, frozen, mutable, replace


@frozen
class Place:
    """Where something is."""

    row: int
    column: int = 0
    marks: Mapping[str, Any] = field(default_factory=dict)

    @property
    def both(self) -> tuple[int, int]:
        return self.row, self.column

    @classmethod
    def home(cls) -> Place:
        return cls(0)


@frozen
class Other:
    row: int
    column: int = 0
    marks: Mapping[str, Any] = field(default_factory=dict)


@frozen
class Nothing:
    pass


@mutable
class Tally:
    name: str
    seen: list[int] = field(default_factory=list)


def test_values_are_given_by_place_or_by_name_and_have_defaults() -> None:
    assert Place(3).both == (3, 0)
    assert Place(row=3, column=4).both == Place(3, 4).both == (3, 4)
    assert Place.home().both == (0, 0)


@pytest.mark.parametrize("wrong", [{}, {"row": 1, "colour": 2}])
def test_a_missing_or_unknown_value_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(TypeError, match=r"__init__\(\)"):
        Place(**wrong)  # type: ignore[arg-type]


def test_equal_are_those_of_one_class_with_equal_values() -> None:
    assert Place(1, 2) == Place(1, 2)
    assert Place(1, 2) != Place(1, 3)
    other: object = Other(1, 2)
    assert Place(1, 2) != other
    assert Nothing() == Nothing()
    empty: object = ()
    assert Nothing() != empty


def test_frozen_values_are_keys_of_a_dictionary_and_mutable_ones_are_not() -> None:
    @frozen
    class Key:
        name: str

    assert {Key("a"): 1}[Key("a")] == 1
    assert len({Nothing(), Nothing()}) == 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(Tally("x"))


def test_a_frozen_value_cannot_be_changed_and_has_no_room_for_more() -> None:
    place = Place(1)
    with pytest.raises(AttributeError, match="not to be changed: row"):
        place.row = 2  # type: ignore[misc]
    with pytest.raises(AttributeError, match="not to be changed: row"):
        del place.row
    with pytest.raises(AttributeError):
        place.other = 2  # type: ignore[attr-defined]
    assert place.row == 1


def test_a_mutable_value_can_be_changed_and_shares_no_default() -> None:
    one, two = Tally("one"), Tally("two")
    one.seen.append(1)
    one.name = "first"
    assert (one.name, one.seen, two.seen) == ("first", [1], [])
    with pytest.raises(AttributeError):
        one.other = 2  # type: ignore[attr-defined]


def test_a_copy_with_some_values_changed_keeps_the_others() -> None:
    assert replace(Place(1, 2), column=5) == Place(1, 5)
    with pytest.raises(TypeError):
        replace(Place(1), colour=5)


def test_values_are_matched_in_their_order_and_shown_by_name() -> None:
    match Place(7, 8):
        case Place(row, column):
            assert (row, column) == (7, 8)
    assert repr(Place(7, 8)) == "Place(row=7, column=8, marks={})"
    assert as_dict(Tally("x")) == {"name": "x", "seen": []}


def test_values_survive_being_copied_and_pickled() -> None:
    place = Place(1, 2, {"a": [1]})
    assert pickle.loads(pickle.dumps(place)) == copy.copy(place) == copy.deepcopy(place) == place


def test_the_docstring_and_the_names_of_a_class_stay() -> None:
    assert (Place.__doc__, Place.__name__, Place.__qualname__, Place.__module__) == (
        "Where something is.",
        "Place",
        "Place",
        __name__,
    )


def test_a_base_class_is_refused_and_not_lost() -> None:
    with pytest.raises(TypeError, match="no base of its own"):

        @frozen
        class Wider(Nothing):
            more: int


def test_a_class_is_finished_with_its_first_object_and_refuses_what_does_not_fit_from_the_start() -> None:
    @frozen
    class Late:
        name: str
        size: int = 3

    with pytest.raises(TypeError, match="name"):
        Late()  # type: ignore[call-arg]
    assert [Late("a"), Late(name="b", size=4)] == [Late("a", 3), Late("b", 4)]
