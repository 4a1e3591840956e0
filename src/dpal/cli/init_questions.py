"""The questions of `dpal init`, in their order."""

from dpal.campaign.default_model import ENCODERS, SMALLEST_SIDE
from dpal.cli import data_answers, model_answers, unit_answers
from dpal.cli.answered_config import COLOUR, GREY, TEXT_MODEL
from dpal.cli.data_answers import PLACE_WORDS
from dpal.cli.questions import NO, NONE, Answers, Question, WrongAnswer, number, one_of, yes_or_no
from dpal.cli.unit_answers import WAYS
from dpal.data.named.registry import DATASETS
from dpal.data.sources import SOURCES
from dpal.data.units import DEFAULT_ROWS
from dpal.labels.oracles import as_oracle
from dpal.planning.request import DEFAULT_PHASES
from dpal.planning.unit_words import plural
from dpal.reports.plain_words import LARGEST_EPSILON
from dpal.selection.selection import INSIDE, PROMISES

# What an encoder of photographs reads, and what a network from scratch can afford.
_ENCODER_SIDE, _SIDE, _LARGEST_SIDE = 224, 64, 4096
_LABELS = 500
_MOST_PHASES = 100
_MOST_PER_UNIT = 1000


def _is_own(answers: Answers) -> bool:
    return answers["source"] in SOURCES


def _has_columns(answers: Answers) -> bool:
    return answers["source"] in ("table", "hugging-face")


def _has_public_held_out(answers: Answers) -> bool:
    return bool(answers.get("held_out") and answers.get("held_out_is_public"))


def _channels(typed: str, answers: Answers) -> int:
    return {GREY: 1, COLOUR: 3}[one_of(GREY, COLOUR)(typed, answers)]


def _side(typed: str, answers: Answers) -> int:
    least = SMALLEST_SIDE if answers["model"] in ENCODERS else 1
    return number(least=least, most=lambda answers: _LARGEST_SIDE)(typed, answers)


def _oracle(typed: str, answers: Answers) -> str:
    as_oracle(typed)
    if typed == "simulated" and _is_own(answers):
        raise WrongAnswer("Your own records have no labels to simulate with. Answer files.")
    return typed


def _has_units(answers: Answers) -> bool:
    return bool(answers.get("several_records"))


def _pool_size(answers: Answers) -> int:
    return data_answers.pool_of(answers).unit_count


def _units(answers: Answers) -> str:
    return plural(data_answers.pool_of(answers).unit)


QUESTIONS: tuple[Question, ...] = (
    Question(
        name="source",
        before=f"Answer ? to any question for an explanation; Enter takes what is in brackets.\n"
        f"  your own records: {', '.join(SOURCES)}    to try it out: {', '.join(DATASETS)}",
        text="where are the records?",
        help="A folder of images, a table with texts or images, an array of numbers, or a Hugging Face dataset. The "
        "other names are published datasets, which need no records of your own.",
        default="image-folder",
        check=data_answers.source,
    ),
    Question(
        name="place",
        applies=_is_own,
        text=lambda answers: PLACE_WORDS[answers["source"]],
        help="A path, from here or absolute; ~ is your home folder. The records stay where they are.",
        default=data_answers.only_place,
        check=data_answers.place,
    ),
    Question(
        name="split",
        applies=lambda answers: answers["source"] == "hugging-face",
        text="the split",
        help="The part of the dataset that is the pool, such as train.",
        default="train",
        check=lambda typed, answers: typed or "train",
    ),
    Question(
        name="kind",
        applies=_has_columns,
        text="texts or images?",
        help="What one row holds: a text in a column, or an image as a path or as bytes.",
        default=data_answers.kind_of_records,
        check=one_of("texts", "images"),
    ),
    Question(
        name="column",
        applies=_has_columns,
        text=lambda answers: f"the column with the {answers['kind']}",
        help="The column that the model reads. For texts it may be two columns, separated by a comma.",
        default=data_answers.content_column_default,
        check=data_answers.content_columns,
    ),
    Question(
        name="id_column",
        applies=_has_columns,
        text="the column with ids",
        help="A column with a different value in every row. Without one, the row number is the id: then rows must "
        "never be sorted or removed.",
        default=data_answers.id_column_default,
        check=data_answers.id_column,
    ),
    Question(
        name="ids_are_free",
        applies=lambda answers: answers["source"] == "image-folder" or bool(answers.get("id_column")),
        before="People who label see the records' names. A name such as ill/03.png or SMITH_1950 says something "
        "about the record.",
        text="are all ids free of content?",
        help="With no, people see opaque names such as 7k2m-0qxw-e9tz. With yes, they see your ids: paths inside the "
        "folder, or the column.",
        default=NO,
        check=yes_or_no,
    ),
    Question(
        name="held_out",
        applies=_is_own,
        before="Public labelled records outside the pool can measure each model; reports show the results.",
        text=lambda answers: (
            "the held-out split"
            if answers["source"] == "hugging-face"
            else f"held-out set: {PLACE_WORDS[answers['source']]}"
        ),
        help="Records that may be known to anyone and are not in the pool, with labels; a folder has a folder for "
        "each class. Without them nobody can tell how good the model is.",
        default=NONE,
        check=data_answers.held_out,
    ),
    Question(
        name="held_out_is_public",
        applies=lambda answers: bool(answers.get("held_out")),
        text="are the held-out records public?",
        help="Accuracy on these records is shown in reports without noise. On private records it would reveal "
        "something about them.",
        default=NO,
        check=yes_or_no,
        after=lambda value: (
            "" if value else "Then they are left out: results on private records would reveal something."
        ),
    ),
    Question(
        name="held_out_labels",
        applies=lambda answers: _has_public_held_out(answers) and answers["source"] != "image-folder",
        text=lambda answers: (
            "the .npy file with the held-out labels"
            if answers["source"] == "numpy"
            else "the column with the held-out labels"
        ),
        help="The true class of each held-out record. The pool's own labels are never read.",
        default=data_answers.held_out_labels_default,
        check=data_answers.held_out_labels,
    ),
    Question(
        name="classes",
        applies=_is_own,
        text="the classes, separated by commas",
        help="What people choose from when they label. They are public. They are suggested from the held-out set only: "
        "collected from private records, a rare class would reveal that it occurs.",
        default=data_answers.suggested_classes,
        check=data_answers.classes,
    ),
    Question(
        name="several_records",
        applies=_is_own,
        before=unit_answers.what_ids_look_like,
        text="do several records belong to one person?",
        help="Such as several images of one patient. Then the promise should be for a person with all of their "
        "records, not for each record by itself.",
        default=unit_answers.several_default,
        check=yes_or_no,
    ),
    Question(
        name="unit_word",
        applies=_has_units,
        text="what is one of them called?",
        help="A word for plans, certificates and tables: patient, lesion, customer. The promise is for one of them.",
        default="patient",
        check=unit_answers.word,
    ),
    Question(
        name="unit_from",
        applies=_has_units,
        text=lambda answers: f"what says which {answers['unit_word']} a record belongs to? ({', '.join(WAYS)})",
        help="column: a column of the table that the records come from. file: another table, with a line for every "
        "record. pattern: the ids themselves, such as everything in front of the first _.",
        default=unit_answers.way_default,
        check=unit_answers.way,
    ),
    Question(
        name="unit_is",
        applies=_has_units,
        text=lambda answers: unit_answers.WAY_WORDS[answers["unit_from"]],
        help="A column's name; or a table with the columns id and unit; or a regular expression, of which the first "
        "group in brackets is the name.",
        default=unit_answers.is_default,
        check=unit_answers.checked_rule,
    ),
    Question(
        name="unit_records",
        applies=_has_units,
        text=lambda answers: f"how many records of one {answers['unit_word']} are used at most?",
        help="Those are labelled and trained on; further ones are left out. It is public: choose it without looking "
        "at the records. Each step computes for this many, so large numbers take longer.",
        default=str(DEFAULT_ROWS),
        check=number(least=1, most=lambda answers: _MOST_PER_UNIT),
    ),
    Question(
        name="one_label",
        applies=_has_units,
        text=lambda answers: f"one label for all records of a {answers['unit_word']}?",
        help="With yes, people see all of them together and give one answer, such as one diagnosis for a patient. With "
        "no, each record gets an answer of its own.",
        default=NO,
        check=yes_or_no,
    ),
    Question(
        name="model",
        before=model_answers.proposal,
        text="the model",
        help="With few labels and privacy noise, what a model knows beforehand decides. An encoder was trained on "
        "public data and is not changed; only a small classifier on top of it is trained on your records.",
        default=model_answers.model_default,
        check=model_answers.model,
    ),
    Question(
        name="text_model",
        applies=lambda answers: answers["model"] == TEXT_MODEL,
        text="the text model, a folder or a name on the hub",
        help="A BERT-style model of transformers. Its tokenizer is used too.",
        default="bert-base-uncased",
        check=model_answers.text_model,
    ),
    Question(
        name="size",
        applies=model_answers.has_stated_form,
        text="the side of the images for the model, in pixels",
        help="Every image is cut to its middle square and resized to this. Encoders of photographs know 224; from "
        "scratch, each doubling takes about four times as long.",
        default=lambda answers: str(_ENCODER_SIDE if answers["model"] in ENCODERS else _SIDE),
        check=_side,
    ),
    Question(
        name="channels",
        applies=model_answers.has_stated_form,
        text="grey or colour?",
        help="Every image is converted. It is never taken from the images, because the model shows it.",
        default=COLOUR,
        check=_channels,
    ),
    Question(
        name="epsilon",
        text="ε of the promise",
        help="How much anyone can learn about one record from everything that is released: smaller protects more and "
        "teaches the model less. Agree on it before you start: dpal explain --epsilon 8 says what an ε means and what "
        "others use, docs/epsilon.md how to choose one.",
        default="8",
        check=data_answers.epsilon,
        after=lambda value: (
            ""
            if value <= LARGEST_EPSILON
            else f"ε = {value:g} promises almost nothing in the worst case. Most use 1 to 10."
        ),
    ),
    Question(
        name="selections",
        before="Who may learn which records were labelled?\n"
        "  inside: only you and the people who label. The list and its length must never leave you; choices are "
        "sharp.\n    Someone with a copy of a record who knows that it is in the pool can tell if it was labelled.\n"
        "  released: anyone. The list is covered by the promise too, so choices are noisier.",
        text="selections",
        help="If invoices, publications or other departments will show which records were labelled, answer released.",
        default=INSIDE,
        check=one_of(*PROMISES),
    ),
    Question(
        name="labels",
        before=lambda answers: f"{_pool_size(answers):,} {_units(answers)} in the pool.",
        text=lambda answers: (
            f"{_units(answers)} that people can label in total"
            if _has_units(answers)
            else "labels that people can give in total"
        ),
        help="All rounds together. More labels make a better model at the same ε.",
        default=lambda answers: str(max(2, min(_LABELS, _pool_size(answers) // 2))),
        check=number(least=2, most=lambda answers: _pool_size(answers)),
    ),
    Question(
        name="phases",
        text="training phases",
        help="Between phases the model chooses what people label next. Each phase costs some of the ε; 1 means that "
        "all records are drawn at random.",
        default=lambda answers: str(DEFAULT_PHASES[answers["selections"]]),
        check=number(least=1, most=lambda answers: _MOST_PHASES),
    ),
    Question(
        name="oracle",
        text="who labels?",
        help="files: people, with tables that dpal labels exports and imports. simulated: a published dataset's own "
        "labels. Or a function of yours, package.module:function.",
        default="files",
        check=_oracle,
    ),
)
