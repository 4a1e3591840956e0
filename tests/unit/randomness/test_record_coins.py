"""Coins by id: the standard's function, exact, the same in any order, and useless without the key."""

from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import algorithms
from cryptography.hazmat.primitives.cmac import CMAC
from statistics_helper import counts_are, rate_is

from dpal.errors import InvalidArgument
from dpal.randomness import IdColumn, RecordCoins, SealedRandomness, record_coins
from dpal.randomness.record_coins import first_in_order, tags

KEY = bytes(range(32))
NAMES = ["", "a", "x" * 15, "y" * 16, "z" * 17, "ü" * 16, "q" * 48, "r" * 49, *(f"img-{i}" for i in range(50))]
MANY = IdColumn.of(np.asarray([f"record {number}" for number in range(200_000)]))


def test_it_is_aes_cmac(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_coins, "_CHUNK", 7)
    # All lengths together, short ones, and ids of one length.
    for names in (NAMES, NAMES[1:4], [f"{n:08d}" for n in range(30)], ["p" * 16, "q" * 16], ["s" * 40] * 2, ["", ""]):
        for name, tag in zip(names, tags(KEY, IdColumn.of(np.asarray(names))), strict=True):
            reference = CMAC(algorithms.AES(KEY))
            reference.update(name.encode())
            assert tag.tobytes() == reference.finalize()


def test_the_examples_of_the_standard() -> None:
    # RFC 4493 Sec. 4 has AES-128; NIST SP 800-38B D.3 the same messages with AES-256.
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    message = np.frombuffer(bytes.fromhex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"), np.uint8)
    column = IdColumn(data=message, starts=np.zeros(2, dtype=np.int64), lengths=np.asarray([0, 16]))
    assert [tag.tobytes().hex() for tag in tags(key, column)] == [
        "028962f61b7bf89efc6b551f4667d983",
        "28a7023f452e8f82bd4bf28d8c37c35c",
    ]


def test_coins_belong_to_ids() -> None:
    coins, order = RecordCoins(KEY), np.random.default_rng(0).permutation(1000)
    some = MANY[:1000]
    for draw in (
        lambda ids: coins.integers(4096, ids),
        lambda ids: coins.integers(3_000_000_001, ids),
        lambda ids: coins.coins(Fraction(1, 3), ids),
        lambda ids: coins.order(ids)[:, 0],
    ):
        # In another order, one by one, or again: the same record has the same coins.
        assert draw(some[order]).tolist() == draw(some)[order].tolist() == draw(some)[order].tolist()
        assert draw(some[5:6])[0] == draw(some)[5]
    chosen = coins.subset(some, 100)
    assert set(order[coins.subset(some[order], 100)].tolist()) == set(chosen.tolist())
    # Another key, or another purpose, has nothing to do with it.
    other = RecordCoins(KEY[::-1])
    assert (other.integers(4096, some) == coins.integers(4096, some)).sum() < 10
    assert len(np.intersect1d(other.subset(some, 100), chosen)) < 40
    assert (coins.order(some)[:, 0] >> np.uint64(52) == coins.integers(4096, some).astype(np.uint64)).sum() < 10


def test_a_step_that_is_repeated_has_the_same_coins_and_another_step_has_others() -> None:
    drawn = [SealedRandomness(key).record_coins().integers(4096, MANY[:500]) for key in (KEY, KEY, KEY[::-1])]
    assert drawn[0].tolist() == drawn[1].tolist() != drawn[2].tolist()
    first = SealedRandomness(KEY)
    assert first.record_coins().key != first.record_coins().key
    assert KEY.hex() not in repr(RecordCoins(KEY)) and str(KEY) not in repr(RecordCoins(KEY))


def biased(coins: RecordCoins, probability: Fraction, ids: IdColumn) -> np.ndarray:
    """A planted bug: sixteen bits, rounded down."""
    return (coins.integers(1 << 16, ids) < int(probability * 2**16)) & (coins.integers(50, ids) > 0)


def test_rates_are_those_stated() -> None:
    coins = RecordCoins(KEY)
    for probability in (Fraction(1, 3), Fraction(0.02), Fraction(999, 1000)):
        assert rate_is(int(coins.coins(probability, MANY).sum()), len(MANY), float(probability))
    assert not rate_is(int(biased(coins, Fraction(999, 1000), MANY).sum()), len(MANY), 0.999)
    for bound in (8, 10, 2**31 + 1):
        cells = np.bincount(coins.integers(bound, MANY) * 8 // bound, minlength=8)
        expected = np.diff([-(-bound * cell // 8) for cell in range(9)]) / bound
        assert counts_are(cells.tolist(), expected.tolist())
    assert coins.coins(Fraction(0), MANY[:9]).sum() == 0 and coins.coins(Fraction(1), MANY[:9]).sum() == 9


def test_a_word_at_the_threshold_leaves_the_coin_open(monkeypatch: pytest.MonkeyPatch) -> None:
    words = {0: [5, 6, 5, 4], 1: [2**31 - 1, 2**31]}
    asked: list[tuple[int, int]] = []

    def scripted(self: RecordCoins, purpose: bytes, draw: int, ids: IdColumn) -> np.ndarray:
        asked.append((draw, len(ids)))
        return np.asarray(words[draw], dtype=np.uint32)

    monkeypatch.setattr(RecordCoins, "_words", scripted)
    # 5.5 words: of two that are equal to 5, the second word decides by one half.
    probability = Fraction(11, 2) / 2**32
    assert RecordCoins(KEY).coins(probability, MANY[:4]).tolist() == [True, False, False, True]
    assert asked == [(0, 4), (1, 2)]
    # An unfair word is drawn again for its id alone.
    words.update({0: [2**32 - 1, 7], 1: [4]})
    assert RecordCoins(KEY).integers(5, MANY[:2]).tolist() == [4, 2]


def test_subsets_are_equally_likely() -> None:
    ids = MANY[:5]
    seen = np.zeros((5, 5), dtype=int)
    for number in range(4000):
        first, second = RecordCoins(number.to_bytes(32, "little")).subset(ids, 2)
        seen[first, second] += 1
    assert counts_are(seen[np.triu_indices(5, 1)].tolist(), [0.1] * 10)
    order = np.asarray([[3, 1], [1, 2], [1, 1], [2, 0]], dtype=np.uint64)
    assert first_in_order(order, 2).tolist() == [2, 1] and first_in_order(order, 9).tolist() == [2, 1, 3, 0]


def test_what_makes_no_sense_is_refused() -> None:
    coins = RecordCoins(KEY)
    for refused in (
        lambda: coins.integers(0, MANY[:2]),
        lambda: coins.coins(Fraction(3, 2), MANY[:2]),
        lambda: coins.subset(MANY[:2], 3),
    ):
        with pytest.raises(InvalidArgument):
            refused()
