"""A model's card for people, as registries of models show it: what it is, what was promised, and how to load it."""

import json
from collections.abc import Mapping
from typing import Any

from dpal.privacy.rounding import rounded_up


def model_card(facts: Mapping[str, Any], *, multi_label: bool) -> str:
    """Markdown with the front matter that Hugging Face reads, from the facts of an exported model."""
    spent = f"ε = {rounded_up(facts['epsilon'], 4):.4f} at δ = {facts['delta']:g}"
    encoder = facts["encoder"]
    lines = [
        "---",
        "library_name: dpal",
        "tags:",
        "- differential-privacy",
        "- active-learning",
        f"pipeline_tag: {_kind(facts)}-classification",
        "---",
        "",
        "# A model trained with differential privacy",
        "",
        f"It tells {len(facts['classes'])} classes apart: {', '.join(facts['classes'])}."
        + (" A record may have several of them." if multi_label else ""),
        "",
        "## What was promised",
        "",
        *(
            [
                f"Every {facts['unit']} of the private pool is protected, whether or not it was trained on: {spent}.",
                "",
                *([str(facts["unit_in_words"]), ""] if facts["unit_in_words"] else []),
                str(facts["selections_in_words"]),
            ]
            if facts["is_private"]
            else ["**Not private**: made with a known seed, or a selection that is not private."]
        ),
        "",
        f"Phase {facts['phase']} of {facts['of_phases']}. The ledger up to this model has the hash",
        f"`{facts['ledger_hash']}`; the campaign's certificate names this file by its hash, `{facts['sha256']}`.",
        "The certificate also lists what the promise assumes.",
        "",
        *(
            [
                "## What it was given",
                "",
                f"Its features come from a public encoder, {encoder['name']}, trained on {encoder['trained_on']}.",
                "Only the head was trained on private records.",
                "",
            ]
            if encoder
            else []
        ),
        "## How to load it",
        "",
        *_loading(facts),
        "",
    ]
    return "\n".join(lines)


def _loading(facts: Mapping[str, Any]) -> list[str]:
    """Code that runs as it stands, next to the files."""
    name = facts["file"].replace("\\", "/").rpartition("/")[2]
    words: list[str] = []
    if "onnx" in facts:
        inputs = ", ".join(f"{one['name'] or 'records'!r}: {one['name'] or 'records'}" for one in facts["inputs"])
        shapes = "; ".join(f"{one['name'] or 'records'} is {one['kind']} of (n, {', '.join(map(str, one['shape']))})"
                           for one in facts["inputs"])  # fmt: skip
        words += [
            f"As ONNX, from records as they are ({shapes}):",
            "",
            "```python",
            "import onnxruntime",
            "",
            f"session = onnxruntime.InferenceSession({facts['onnx']['file']!r})",
            f'(logits,) = session.run(["logits"], {{{inputs}}})',
            "```",
            "",
        ]
    if encoder := facts["encoder"]:
        return [*words, str(encoder["how_to_use"])]
    if facts["model"] is None:
        return [*words, f"The weights are in `{name}` (safetensors), for the network that the campaign was made with."]
    return [
        *words,
        "With dpal and PyTorch:",
        "",
        "```python",
        "from safetensors.torch import load_file",
        "",
        "from dpal.models import build_model",
        "",
        f"model = build_model({facts['model']['name']!r}, {json.loads(json.dumps(facts['model']['options']))!r})",
        f"model.load_state_dict(load_file({name!r}))",
        "model.eval()",
        "```",
        "",
        *(
            [f"Bytes become (value / 255 − mean) / deviation first, as `{name}.json` says under `inputs`."]
            if any(one["scaling"] for one in facts["inputs"])
            else []
        ),
        f"How records were prepared is in `{name}.json` under `inputs` as well, if they were.",
    ]


def _kind(facts: Mapping[str, Any]) -> str:
    """What records are, as registries name it: an encoder reads the records, and the model only their features."""
    encoder = facts["encoder"]
    records = facts["inputs"] if encoder is None else encoder["records"]
    if facts["text"] or records is None:
        return "text"
    return "image" if any(len(one["shape"]) == 3 for one in records) else "tabular"
