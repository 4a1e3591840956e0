import json

import pytest
from command_line import dpal


def test_people_get_words_and_a_table() -> None:
    done = dpal("explain", "--epsilon", "8", "--records-per-person", "5")
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.split())
    assert "could guess right at most 99.97% of the time" in words
    assert "ε = 1.6 and δ = 1.32e-08 for each record" in words


def test_programs_get_json() -> None:
    done = dpal("explain", "--epsilon", "1", "--delta", "1e-6", "--pool-size", "5000", "--json")
    document = json.loads(done.stdout)
    assert (document["epsilon"], document["delta"], document["pool_size"]) == (1.0, 1e-6, 5000)
    assert document["several_records"] is None
    assert {row["epsilon"] for row in document["worst_cases"]} == {0.1, 1, 2, 4, 8, 16}


def test_a_large_epsilon_is_explained_and_said_to_protect_little() -> None:
    done = dpal("explain", "--epsilon", "1000")
    assert done.returncode == 0
    assert "This protects little: ε = 1000 is above 10." in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--epsilon", "0"), "epsilon is 0.0"),
        (("--epsilon", "nan"), "epsilon is nan"),
        (("--epsilon", "8", "--delta", "1"), "delta is 1.0"),
        (("--epsilon", "8", "--delta", "0.01", "--pool-size", "1000"), "at most 1 / 1,000, the number of records"),
        (("--epsilon", "8", "--records-per-person", "0"), "records_per_person is 0"),
        ((), "--epsilon"),
    ],
)
def test_a_mistake_gets_a_sentence_and_exit_code_2(words: tuple[str, ...], message: str) -> None:
    done = dpal("explain", *words)
    assert done.returncode == 2
    assert message in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
