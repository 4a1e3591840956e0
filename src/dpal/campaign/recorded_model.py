"""The model whose weights the facts name: loaded, checked, and exported for use elsewhere."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

from dpal.campaign.config import CampaignConfig
from dpal.campaign.files import digest, write_text, write_whole
from dpal.campaign.layout import EXPORT_DRAFT, WEIGHTS
from dpal.campaign.model_card import model_card
from dpal.campaign.parts import Parts, model_options
from dpal.campaign.state import State
from dpal.campaign.status import Status
from dpal.data import Pool
from dpal.data.records import Records, TextRecords
from dpal.errors import DamagedCampaign, InvalidArgument, MissingData
from dpal.models.encoder import Encoder
from dpal.models.encoders import TRANSFORMERS
from dpal.models.heads import FeatureHead
from dpal.planning.promises import WORDS
from dpal.planning.unit_words import unit_sentence
from dpal.training.learner import Learner
from dpal.training.pool_mean import set_centre

RESTORE_MODEL = (
    "Restore it from a backup: training again would release a second model on one charge, which the plan does not "
    "allow for. Nothing was changed."
)


class RecordedModel:
    """A learner that always has the newest recorded weights when it is asked for."""

    def __init__(self, folder: Path, build: Callable[[], Learner]) -> None:
        self._folder, self._build = folder, build
        self._learner: Learner | None = None
        # The hash of the weights that the learner has; None if they are not recorded ones.
        self.loaded: str | None = None
        self._centred_at: tuple[float, ...] | None = None

    def at(self, state: State) -> Learner:
        """The learner with the newest recorded weights. A file that differs from what was recorded is refused."""
        if self._learner is None:
            self._learner = self._build()
        file, sha256 = WEIGHTS, state.created.weights
        if state.trained:
            file, sha256 = state.trained[-1].file, state.trained[-1].sha256
        if self.loaded != sha256 or (self._centred_at != state.mean and not state.trained):
            path = self._folder / file
            if not path.is_file() or digest(path) != sha256:
                raise DamagedCampaign(f"{path} is missing or differs from what was recorded. {RESTORE_MODEL}")
            self._learner.load(path)
            if state.mean is not None and not state.trained:
                # Later models have it among their own weights.
                set_centre(self._learner.model, state.mean)
            self.loaded, self._centred_at = sha256, state.mean
        return self._learner

    def weights_changed(self) -> None:
        """From now on the weights are not the recorded ones."""
        self.loaded = None

    def reset(self) -> None:
        """Build the learner again when it is next asked for."""
        self._learner = self.loaded = None

    def export_hash(self, learner: Learner) -> str:
        """The hash of the file that an export would write now."""
        draft = self._folder / EXPORT_DRAFT
        try:
            learner.export(draft)
            return digest(draft)
        finally:
            draft.unlink(missing_ok=True)


def export_model(
    file: Path,
    model: RecordedModel,
    state: State,
    status: Status,
    *,
    config: CampaignConfig,
    parts: Parts,
    onnx: bool = False,
) -> dict[str, Any]:
    """Write the newest model's weights as one safetensors file, and its card as FILE.json; returns the card.

    The card has what was promised, and what is needed to use the model elsewhere. The same for people is FILE.md. With
    `onnx`, the model itself is next to it, from records as they are to logits.
    """
    folder, path = Path(status.folder), file.absolute()
    if not state.trained:
        why = "every phase so far was given up" if state.given_up else "no phase is trained yet"
        raise MissingData(f"There is no model to export from {folder}: {why}. Nothing was written.")
    if path.resolve().is_relative_to(folder.resolve()) or not path.parent.is_dir():
        raise InvalidArgument("the file to write", str(file), "in a folder that exists, outside the campaign")
    learner = model.at(state)
    if onnx:
        write_whole(onnx_file(path), learner.export_onnx)
    write_whole(path, learner.export)
    scaling = {"mean": config.training.pixel_mean, "deviation": config.training.pixel_deviation}
    card = {
        # Its name alone: what an export says is passed on.
        "file": file.name,
        "sha256": digest(path),
        "phase": state.trained[-1].phase + 1,
        "of_phases": status.phases,
        "phases_given_up": [phase + 1 for phase in state.given_up],
        "classes": list(state.created.classes),
        # Spent by all charges so far.
        "epsilon": status.epsilon_spent,
        "delta": status.target_delta,
        "is_private": status.is_private,
        "selections": status.selections,
        "selections_in_words": WORDS[status.selections].in_full if status.is_private else None,
        # What the promise protects one of.
        "unit": status.unit,
        "unit_in_words": unit_sentence(status.unit) if status.is_private else None,
        "plan_hash": state.created.plan_hash,
        "ledger_hash": state.last_hash,
        # None if the model came from Python.
        "model": config.model
        and {
            "name": config.model.name,
            "options": {
                option: _without_folder(value)
                for option, value in model_options(config.model, parts.pool, learner.records).items()
            },
        },
        "encoder": None if parts.encoder is None else _encoder(parts.encoder, learner, parts.pool),
        "text": config.text and {**config.text.model_dump(), "tokenizer": _without_folder(config.text.tokenizer)},
        "inputs": [
            {
                "name": name,
                "shape": list(form.shape),
                "kind": str(form.dtype),
                # Bytes become (value / 255 − mean) / deviation.
                "scaling": scaling if form.dtype == np.uint8 else None,
                # Before that; None if records are used as they are.
                "preparation": learner.records.preparation if isinstance(learner.records, Records) else None,
            }
            for name, form in learner.records.form.items()
        ],
    }
    if onnx:
        card["onnx"] = {"file": onnx_file(Path(file)).name, "sha256": digest(onnx_file(path)), "output": "logits"}
    write_text(card_file(path), json.dumps(card, indent=2, ensure_ascii=False) + "\n")
    write_text(readme_file(path), model_card(card, multi_label=state.created.multi_label))
    return card


def onnx_file(file: Path) -> Path:
    """Where the model as ONNX is."""
    return file.with_suffix(".onnx")


def readme_file(file: Path) -> Path:
    """Where the card for people is."""
    return file.with_name(f"{file.name}.md")


def card_file(file: Path) -> Path:
    """Where the card of an exported model is."""
    return file.with_name(f"{file.name}.json")


def _encoder(encoder: Encoder, learner: Learner, pool: Pool) -> dict[str, Any]:
    """What is needed to make features, and to use the exported head on them."""
    classes, texts = len(pool.classes), isinstance(pool.records, TextRecords)
    own = {name: value for name, value in encoder.facts().items() if name in ("side", "max_length")}
    options = "".join(f", {name}={value}" for name, value in own.items())
    hidden = cast("FeatureHead", learner.model).output.in_features
    head = f"{list(encoder.blocks)}, {classes}, hidden={0 if hidden == encoder.width else hidden}"
    return {
        **encoder.facts(),
        # What the encoder was given: features of records that were prepared in another way are other features.
        "records": None
        if texts
        else [
            {"name": name, "shape": list(form.shape), "kind": str(form.dtype), "preparation": pool.records.preparation}
            for name, form in pool.records.form.items()
        ],
        "how_to_use": "The file holds the head alone. Prepare records as `records` says, if it says so. "
        f"rows = dpal.models.encoder_named({encoder.name!r}{options}).encode(records) makes features, by the facts "
        f"above. head = dpal.models.FeatureHead({head}) is the head; head.load_state_dict(safetensors.torch.load_file("
        "FILE)) gives it its weights, and head(torch.from_numpy(rows)) are logits.",
    }


def _without_folder(value: Any) -> Any:
    """Of a path on this machine, only the last part: what an export says is passed on."""
    if not isinstance(value, str):
        return value
    start = TRANSFORMERS if value.startswith(TRANSFORMERS) else ""
    path = Path(value.removeprefix(start))
    return f"{start}{path.name}" if path.is_absolute() else value
