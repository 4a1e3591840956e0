import pytest
from settings import SMALL

import dpal
from dpal.errors import InvalidArgument
from dpal.planning.documents import read_json, require_same


@pytest.fixture(scope="module")
def small() -> dpal.Plan:
    return dpal.plan(**SMALL)


def test_a_key_that_stands_twice_is_refused(small: dpal.Plan) -> None:
    with pytest.raises(InvalidArgument, match="appears twice"):
        dpal.read_plan(small.to_text().replace("{", '{"epsilon": 0.001, ', 1))


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": -Infinity}', '{"a": {"b": 1, "b": 2}}', "{", "[" * 100_000])
def test_what_is_not_strict_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        read_json("the plan", text)


@pytest.mark.parametrize(("stated", "holds"), [(2.0, True), (2.0 + 1e-6, True), (2.0 - 1e-8, False), (2.1, False)])
def test_a_recomputed_epsilon_may_be_stated_a_little_higher_and_never_lower(stated: float, holds: bool) -> None:
    for place in ({"epsilon": stated}, {"epsilon_by_phase": [stated]}):
        true = {name: [2.0] if isinstance(value, list) else 2.0 for name, value in place.items()}
        if holds:
            require_same("the plan", place, true, recomputed=True)
        else:
            with pytest.raises(InvalidArgument, match="the plan: epsilon"):
                require_same("the plan", place, true, recomputed=True)


@pytest.mark.parametrize(
    ("stated", "true"),
    [
        ({"epsilon": 2.0 + 1e-9}, {"epsilon": 2.0}),
        ({"steps": True}, {"steps": 1}),
        ({"steps": "1"}, {"steps": 1}),
        ({"steps": [1, 2]}, {"steps": [1]}),
        ({"steps": 1, "surprise": 2}, {"steps": 1}),
        ({}, {"steps": 1}),
        ({"steps": None}, {"steps": {}}),
    ],
)
def test_anything_else_must_be_the_same(stated: object, true: object) -> None:
    with pytest.raises(InvalidArgument, match="the plan"):
        require_same("the plan", stated, true)
    require_same("the plan", {"steps": 1.0}, {"steps": 1})
