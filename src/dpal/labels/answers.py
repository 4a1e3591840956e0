"""One answer about one record, as people and functions give it, and its checked value."""

from typing import TypeAlias, cast

import numpy as np

from dpal.data.class_labels import class_numbers, label_vectors
from dpal.errors import BadData, InvalidArgument

# The checked value: a class number, one target per class for several labels, or one of the two words below.
Answer: TypeAlias = int | tuple[float, ...] | str
SKIPPED = "skip"
CANNOT_TELL = "cannot-tell"
NO_LABEL = (SKIPPED, CANNOT_TELL)
# What people write for the two answers without a label.
_SPELLINGS = {
    SKIPPED: SKIPPED,
    "skipped": SKIPPED,
    CANNOT_TELL: CANNOT_TELL,
    "cannot tell": CANNOT_TELL,
    "can't tell": CANNOT_TELL,
    "?": CANNOT_TELL,
}


def word_for_no_label(text: str, classes: tuple[str, ...]) -> str | None:
    """The answer without a label that a text means; None if it means something else, such as a class of that name."""
    return None if text in classes else _SPELLINGS.get(text.strip().lower())


def allowed_answers(classes: tuple[str, ...]) -> str:
    """What may be answered, for error messages."""
    return f"one of {', '.join(classes)}, or {' or '.join(NO_LABEL)}"


def read_answer(given: object, name: str, classes: tuple[str, ...], multi_label: bool) -> Answer:
    """The checked value of what was answered. An error names the record by `name`."""
    if isinstance(given, str) and (word := word_for_no_label(given, classes)) is not None:
        return word
    ids = np.asarray([name], dtype=np.str_)
    try:
        if multi_label:
            return tuple(float(target) for target in label_vectors([given], ids, classes)[0])
        number = int(class_numbers([given], ids, classes)[0])
    except BadData as error:
        raise InvalidArgument(f"the answer for {name!r}", given, allowed_answers(classes)) from error
    if number < 0:
        raise InvalidArgument(f"the answer for {name!r}", given, "not empty")
    return number


def is_answer(answer: Answer, classes: tuple[str, ...], multi_label: bool) -> bool:
    """Whether this is a checked value for these classes."""
    if isinstance(answer, str):
        return answer in NO_LABEL
    if isinstance(answer, tuple):
        return multi_label and len(answer) == len(classes) and all(0 <= target <= 1 for target in answer)
    return not multi_label and 0 <= answer < len(classes)


def answer_in_words(answer: Answer, classes: tuple[str, ...]) -> str:
    """The answer as people give it: a class's name, the classes of several labels, or a word for no label."""
    if isinstance(answer, tuple):
        given = [
            name if target == 1 else f"{name} {target:g}"
            for name, target in zip(classes, answer, strict=True)
            if target > 0
        ]
        return ", ".join(given) or "none of them"
    return answer if isinstance(answer, str) else classes[answer]


def answer_from_json(value: object) -> Answer:
    """The checked value from its JSON; anything else is a ValueError."""
    if isinstance(value, list):
        return tuple(float(target) for target in cast("list[float]", value))
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if value in NO_LABEL:
        return str(value)
    raise ValueError(value)
