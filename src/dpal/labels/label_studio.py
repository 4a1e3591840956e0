"""Label Studio's own forms: tasks, the labelling interface, and answers in what it exports.

Every task carries the question's name, so that an answer is found again whatever number the server gave the task.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast
from xml.sax.saxutils import quoteattr

from dpal.labels.answers import CANNOT_TELL, SKIPPED

NAME = "dpal_name"
_QUESTION, _CHOICES = "question", "label"
_CANNOT_TELL_WORDS = "cannot tell"


def task_of(name: str, *, files: Sequence[str] = (), texts: Sequence[Sequence[str]] = ()) -> dict[str, Any]:
    """A task: the question's name, and its pictures (addresses) or texts."""
    flat = [text for record in texts for text in record]
    pictures = {f"image{number}": file for number, file in enumerate(files, start=1)}
    return {"data": {NAME: name, **pictures, **{f"text{number}": text for number, text in enumerate(flat, start=1)}}}


def labelling_interface(classes: Sequence[str], *, multi_label: bool, pictures: int, texts: int) -> str:
    """The interface in Label Studio's markup: pictures side by side, or texts, and one choice or several."""
    controls = 'zoom="true" zoomControl="true" brightnessControl="true" contrastControl="true"'
    shown = [f'  <Image name="image{n}" value="$image{n}" {controls}/>' for n in range(1, pictures + 1)]
    shown += [f'  <Text name="text{number}" value="$text{number}"/>' for number in range(1, texts + 1)]
    if not shown:
        shown = [f'  <Header name="name" value="${NAME}"/>', f'  <Text name="text1" value="${NAME}"/>']
    target = "image1" if pictures else "text1"
    choice = "multiple" if multi_label else "single-radio"
    # With several labels, nothing chosen means that none applies.
    required = "false" if multi_label else "true"
    names = [*classes, *([] if _CANNOT_TELL_WORDS in classes else [_CANNOT_TELL_WORDS])]
    options = [f"    <Choice value={quoteattr(name)}/>" for name in names]
    return "\n".join(
        [
            "<View>",
            *shown,
            f'  <Choices name="{_CHOICES}" toName="{target}" choice="{choice}" required="{required}">',
            *options,
            "  </Choices>",
            "</View>",
        ]
    )


def no_label_of(annotation: Mapping[str, Any], classes: Sequence[str]) -> str | None:
    """Skip or cannot-tell, if that is what an annotation says: also where a class has such a name."""
    if annotation.get("was_cancelled"):
        return SKIPPED
    return CANNOT_TELL if _CANNOT_TELL_WORDS in _chosen(annotation) and _CANNOT_TELL_WORDS not in classes else None


def answer_of(annotation: Mapping[str, Any], classes: Sequence[str], *, multi_label: bool) -> str | list[float]:
    """What an annotation says: a class's name, one number per class, or skip or cannot-tell. Else a ValueError."""
    if (word := no_label_of(annotation, classes)) is not None:
        return word
    chosen = _chosen(annotation)
    if unknown := [name for name in chosen if name not in classes]:
        raise ValueError(f"{unknown[0]!r} is not one of the classes")
    if multi_label:
        return [1.0 if name in chosen else 0.0 for name in classes]
    if len(chosen) != 1:
        raise ValueError(f"{len(chosen)} classes are chosen instead of one")
    return chosen[0]


def _chosen(annotation: Mapping[str, Any]) -> list[str]:
    return [
        str(name)
        for region in cast("list[dict[str, Any]]", annotation.get("result") or [])
        if region.get("from_name") == _CHOICES
        for name in region.get("value", {}).get("choices", [])
    ]


def newest(task: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The annotation of a task that counts: the one that was changed last. None if there is none."""
    annotations = cast("list[dict[str, Any]]", task.get("annotations") or [])
    return max(annotations, key=lambda one: (str(one.get("updated_at", "")), int(one.get("id", 0))), default=None)
