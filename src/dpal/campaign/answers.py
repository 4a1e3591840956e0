"""One answer, as people and functions give it, checked."""

import numpy as np

from dpal.campaign.facts import CANNOT_TELL, NO_LABEL, SKIPPED, Answer
from dpal.data.class_labels import class_numbers, label_vectors
from dpal.errors import BadData, InvalidArgument

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
    """The answer without a label that a text means, unless it is a class's name."""
    return None if text in classes else _SPELLINGS.get(text.strip().lower())


def read_answer(given: object, name: str, classes: tuple[str, ...], multi_label: bool) -> Answer:
    """A class number, targets, or an answer without a label; anything else is an error with the record's id."""
    if isinstance(given, str) and (word := word_for_no_label(given, classes)) is not None:
        return word
    ids = np.asarray([name], dtype=np.str_)
    try:
        if multi_label:
            return tuple(float(each) for each in label_vectors([given], ids, classes)[0])
        number = int(class_numbers([given], ids, classes)[0])
    except BadData as error:
        allowed = f"one of {', '.join(classes)}, or {' or '.join(NO_LABEL)}"
        raise InvalidArgument(f"the answer for {name!r}", given, allowed) from error
    if number < 0:
        raise InvalidArgument(f"the answer for {name!r}", given, "not empty")
    return number
