"""Randomness that hands out given words, to reach what happens once in four billion."""

import numpy as np

from dpal.randomness import Randomness


class Scripted(Randomness):
    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def bytes(self, count: int) -> bytes:
        taken, self.left = self.left[: count // 4], self.left[count // 4 :]
        assert len(taken) == count // 4, "more words were asked for than the script has"
        return np.array(taken, dtype=np.uint32).tobytes()
