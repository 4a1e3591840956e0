"""Campaigns of every kind that people label on the page, and people who do so in a browser."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pictures import png, write_png
from playwright.sync_api import Page, Request, Response
from warm_processes import COMMAND_LINE, Started

CLASSES = ("healthy", "ill")
FINDINGS = ("edema", "fracture", "nodule")
# The record can be seen, and answers are taken.
READY = '#question[data-ready]:not([data-ready=""])'
KINDS = ("images", "texts", "several-labels", "units")
_PLAN = {
    "target_epsilon": 8,
    "target_delta": 1e-3,
    "planner": "step-amplification",
    # A cut may ask nobody in so small a pool.
    "selection": "random",
    "initial_size": 8,
    "query_sizes": [6],
    "batch_size": 4,
    "epochs": 1,
    "accountant": "rdp",
}


def write_campaign(folder: Path, kind: str) -> Path:
    """A configuration and its data. Ids begin with the record's number, from which its true answer follows."""
    images = [np.random.default_rng(n).integers(0, 255, (10, 10, 1), dtype=np.uint8) for n in range(40)]
    model: dict[str, Any] = {"name": "small-cnn"}
    data: dict[str, Any]
    if kind == "texts":
        from tiny_bert import write_tiny_bert

        write_tiny_bert(folder / "bert")
        rows = [f"{n:03d}-note,a man {('runs', 'sleeps')[n % 2]} .,<b>fever</b> & cough" for n in range(40)]
        (folder / "notes.csv").write_text("\n".join(["case,first,second", *rows]) + "\n")
        options = {"file": "notes.csv", "text": ["first", "second"], "id_column": "case", "classes": list(CLASSES)}
        data = {"source": "table", "options": options}
        model = {"name": "text-classifier", "options": {"name": "./bert"}}
    elif kind == "several-labels":
        import pyarrow as pa
        import pyarrow.parquet as parquet

        ids = [f"{n:03d}-scan" for n in range(40)]
        parquet.write_table(pa.table({"case": ids, "scan": [png(image) for image in images]}), folder / "scans.parquet")
        options = {"file": "scans.parquet", "image": "scan", "id_column": "case", "classes": list(FINDINGS)}
        data = {"source": "table", "options": options | {"multi_label": True, "size": 8, "channels": 1}}
    else:
        for n, image in enumerate(images):
            name = f"{n // 2:03d}_{n % 2}.png" if kind == "units" else f"{n:03d}-scan.png"
            write_png(folder / "scans" / name, image)
        options = {"folder": "scans", "classes": list(CLASSES), "size": 8, "channels": 1}
        data = {"source": "image-folder", "options": options}
        if kind == "units":
            data["unit"] = {"pattern": "^([0-9]+)_", "name": "patient", "records": 3, "one_label": True}
    document = {"data": data, "plan": _PLAN, "model": model}
    if kind == "texts":
        document["text"] = {"tokenizer": "./bert", "max_length": 16}
    (folder / "c.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return folder / "c.yaml"


def truth(kind: str, record_id: str) -> object:
    """The true answer: a class's number, or the targets."""
    number = int(record_id[:3])
    return [number % 2, number // 2 % 2, 0] if kind == "several-labels" else number % 2


def running(folder: Path) -> Started:
    """`dpal run --wait` in a process of its own."""
    return Started(COMMAND_LINE, "run", folder, "--wait")


@dataclass
class Expert:
    """Someone with a page open. Every answer that the server acknowledged is noted."""

    page: Page
    answer: Callable[[str], object]
    touch: bool = False
    acknowledged: dict[str, dict[str, Any]] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("response", self._note)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda line: self.complaints.append(line.text) if "Security" in line.text else None)

    def _note(self, response: Response) -> None:
        request: Request = response.request
        if request.url.endswith("/api/answer") and response.status == 200:
            body = json.loads(request.post_data or "{}")
            self.acknowledged[body["key"]] = body

    def opened(self, link: str) -> "Expert":
        self.page.goto(link)
        self.page.wait_for_selector(f"{READY}, #message:not([hidden])")
        return self

    def name(self) -> str | None:
        """The record that is shown, or None."""
        return self.page.inner_text("#name") if self.page.is_visible("#question") else None

    def give(self, answer: object) -> None:
        """Answer the record that is shown, by key or by tap, and wait for the next one."""
        if self.page.is_visible("#question"):
            # Before it can be seen, no answer is taken.
            self.page.wait_for_selector(READY)
        before = self.page.inner_text("#position") if self.page.is_visible("#question") else ""
        press = self._tap if self.touch else self._press
        if isinstance(answer, list):
            for place, on in enumerate(answer):
                if on:
                    press(place)
            press("save")
        else:
            press(answer)
        self.page.wait_for_function(
            "before => document.getElementById('question').hidden"
            " || document.getElementById('position').textContent !== before",
            arg=before,
        )

    def _press(self, what: object) -> None:
        keys = {"skip": "s", "cannot-tell": "c", "undo": "u", "back": "b", "save": "Enter"}
        self.page.keyboard.press(keys[what] if isinstance(what, str) else str(int(str(what)) + 1))

    def _tap(self, what: object) -> None:
        if isinstance(what, str):
            self.page.tap(f"#{what}")
        else:
            self.page.locator("#choices button").nth(int(str(what))).tap()

    def answer_all(self) -> int:
        """Answer whatever waits now; returns how many."""
        count = 0
        while (name := self.name()) is not None:
            self.give(self.answer(name))
            count += 1
        return count

    def is_finished(self) -> bool:
        return self.page.is_visible("#message") and "finished" in self.page.inner_text("#message-title")
