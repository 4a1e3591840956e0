"""One label per question from what several people said, by a stated rule that looks at this question alone."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from dpal.labels.answers import CANNOT_TELL, NO_LABEL, SKIPPED, Answer
from dpal.labels.people import ARBITER, UNANIMOUS, Arrangement, Opinion

# Why there is no decision yet.
WAITS, DIFFER = "waits for answers", "answers differ"


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer that counts, or why there is none."""

    answer: Answer | None = field(repr=False)
    open_because: str = ""


def decided(opinions: Mapping[str, Opinion], asked: tuple[str, ...], arrangement: Arrangement) -> Decision:
    """What counts, given everyone's newest opinion and whom the question was given to.

    An arbiter's answer decides. Otherwise as many people must have answered as were asked; those who skip or cannot
    tell abstain under the rule of the majority. Without a label from anyone, the answer is cannot-tell or skip.
    """
    by_arbiter = arbiters_answer(opinions)
    if by_arbiter is not None:
        return Decision(by_arbiter)
    answers = [opinion.answer for opinion in opinions.values() if opinion.answer is not None]
    if len(answers) < max(1, len(asked)):
        return Decision(None, WAITS)
    labels = [answer for answer in answers if answer not in NO_LABEL]
    if not labels:
        return Decision(CANNOT_TELL if CANNOT_TELL in answers else SKIPPED)
    if arrangement.rule == UNANIMOUS:
        return Decision(answers[0]) if len(set(answers)) == 1 else Decision(None, DIFFER)
    return _majority(labels)


def arbiters_answer(opinions: Mapping[str, Opinion]) -> Answer | None:
    """The newest answer that was given as an arbiter, whatever that person is now; None if there is none."""
    given = [one for one in opinions.values() if one.role == ARBITER and one.answer is not None]
    return max(given, key=lambda opinion: opinion.number).answer if given else None


def _majority(labels: list[Answer]) -> Decision:
    """More than half; with several labels per record, for each class by itself."""
    vectors = [answer for answer in labels if isinstance(answer, tuple)]
    if not vectors:
        answer, count = Counter(labels).most_common(1)[0]
        return Decision(answer) if 2 * count > len(labels) else Decision(None, DIFFER)
    targets: list[float] = []
    for values in zip(*vectors, strict=True):
        target, count = Counter(values).most_common(1)[0]
        if 2 * count <= len(vectors):
            return Decision(None, DIFFER)
        targets.append(target)
    return Decision(tuple(targets))
