"""The number of threads: the fastest one, unless someone else has chosen, and as before afterwards."""

from collections.abc import Generator

import pytest
import torch

from dpal.training import threads
from dpal.training.threads import VARIABLES, fastest_threads, seconds_with


@pytest.fixture(autouse=True)
def four(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """A process in which torch would use four threads, and nobody has chosen otherwise."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "_chosen", None)
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


def chosen(**options: bool) -> int:
    with fastest_threads(**options):
        return torch.get_num_threads()


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        # A quiet machine, a busy one, one with two free cores, and one where more threads gain next to nothing.
        ({1: 4.0, 2: 2.1, 4: 1.2}, 4),
        ({1: 4.0, 2: 8.0, 4: 90.0}, 1),
        ({1: 4.0, 2: 2.1, 4: 6.0}, 2),
        ({1: 4.0, 2: 3.9, 4: 3.8}, 1),
    ],
)
@pytest.mark.skipif(torch.cuda.is_available(), reason="with a GPU the number of threads is torch's own")
def test_the_fastest_number_is_used_and_the_former_one_restored(
    monkeypatch: pytest.MonkeyPatch, times: dict[int, float], expected: int
) -> None:
    monkeypatch.setattr(threads, "seconds_with", times.__getitem__)
    assert chosen() == expected
    assert torch.get_num_threads() == 4
    # Not measured again at once.
    monkeypatch.setattr(threads, "seconds_with", None)
    assert chosen() == expected


def test_the_number_is_restored_after_an_error_too() -> None:
    with pytest.raises(ZeroDivisionError), fastest_threads():
        1 / 0  # noqa: B018
    assert torch.get_num_threads() == 4


@pytest.mark.parametrize("name", VARIABLES)
def test_nothing_is_changed_where_it_must_repeat_or_someone_has_chosen(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(threads, "seconds_with", lambda count: float(count))
    assert chosen(keep=True) == 4
    monkeypatch.setenv(name, "4")
    assert chosen() == 4


def test_a_measurement_is_short_and_positive() -> None:
    assert 0 < seconds_with(1) < 5
    assert torch.get_num_threads() == 1
