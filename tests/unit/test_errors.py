"""Errors that dpal raises on purpose: one base, and the usual base of Python where there is one."""

import inspect

import pytest

from dpal import errors
from dpal.errors import BadData, DpalError, InvalidArgument, NumericalFailure, RecordsChanged, WrongSettings


def test_one_base_catches_all_of_them() -> None:
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]
    assert len(kinds) > 10
    assert all(issubclass(kind, DpalError) for kind in kinds)
    # What is not raised on purpose is not caught by it.
    assert not issubclass(ValueError, DpalError)


def test_a_wrong_argument_is_named_with_its_value_and_what_is_allowed() -> None:
    error = InvalidArgument("epsilon", "8", "a number")
    assert str(error) == "epsilon is '8', but must be a number."
    assert (error.name, error.value) == ("epsilon", "8")


def test_wrong_settings_are_wrong_arguments_with_a_message_of_their_own() -> None:
    with pytest.raises(InvalidArgument, match=r"^two things are wrong$") as caught:
        raise WrongSettings("two things are wrong")
    assert (caught.value.name, caught.value.value) == ("the settings", None)


@pytest.mark.parametrize(
    ("kind", "usual"),
    [(InvalidArgument, ValueError), (BadData, ValueError), (NumericalFailure, ArithmeticError)],
)
def test_who_expects_pythons_own_errors_gets_them(kind: type[DpalError], usual: type[Exception]) -> None:
    assert issubclass(kind, usual)


def test_changed_records_are_a_damage_of_the_campaign() -> None:
    assert issubclass(RecordsChanged, errors.DamagedCampaign)
