"""Code that is not dpal's is named in certificates, whichever way it came in."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from torch import nn

from dpal.campaign.foreign_code import acquisition_name, foreign_code, is_same_code
from dpal.models.small_cnn import SmallCNN
from dpal.selection.acquisition import Acquisition, Entropy


@dataclass(frozen=True, slots=True, kw_only=True)
class Gini(Acquisition):
    name: ClassVar[str] = "gini"

    def _scores(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        return 1 - (probabilities**2).mean(axis=-1)


def network() -> nn.Module:
    return nn.Linear(4, 2)


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Own()


class Own(nn.Linear):
    def __init__(self) -> None:
        super().__init__(4, 2)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("resnet9", ()),
        ("torch.nn:Identity", ()),
        ("clinic_models:small", ("clinic_models:small",)),
        (nn.Sequential(nn.Linear(4, 2), nn.ReLU()), ()),
        (SmallCNN(channels=1, classes=2), ()),
        (Network(), (f"{__name__}:Network",)),
        (nn.Sequential(nn.Linear(4, 4), Own()), (f"{__name__}:Own",)),
        (network, (f"{__name__}:network",)),
        (partial(network), (f"{__name__}:network",)),
    ],
)
def test_models_that_are_not_dpals_or_torchs_are_named(model: Any, expected: tuple[str, ...]) -> None:
    assert foreign_code(Entropy(classes=2), model) == expected
    assert foreign_code(Gini(classes=2), model) == tuple(sorted((*expected, f"{__name__}:Gini")))


def test_code_of_a_script_is_the_same_once_it_is_imported() -> None:
    assert is_same_code("entropy", "entropy")
    assert is_same_code("__main__:Gini", "clinic:Gini")
    assert is_same_code("clinic:Gini", "clinic:Gini")
    assert not is_same_code("clinic:Gini", "other:Gini")
    assert not is_same_code("clinic:Gini", "clinic:Margin")
    assert not is_same_code("entropy", "__main__:entropy")


def test_a_foreign_function_is_recorded_by_its_path_not_by_the_name_it_claims() -> None:
    class Entropic(Entropy):
        """It inherits the name entropy."""

    assert acquisition_name(Entropy(classes=2)) == "entropy"
    assert acquisition_name(Entropic(classes=2)).startswith(f"{__name__}:")


def test_an_oracle_is_named_and_nothing_is_named_twice() -> None:
    def oracle(name: str, record: object) -> str:
        return "no"

    (path,) = foreign_code(Entropy(classes=2), "resnet9", oracle)
    assert path.endswith("oracle")
    assert foreign_code(Entropy(classes=2), nn.Sequential(Own(), Own())) == (f"{__name__}:Own",)
