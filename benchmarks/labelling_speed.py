"""Seconds per label for the expert: the page against the table, both scripted.

    python benchmarks/labelling_speed.py [--quick] [--json FILE]

The same images are labelled in two ways by a script that needs no time to think and the same time to look. On the page,
Chromium shows each image, and a key is pressed. With the table, the image named in its line is opened in a viewer
(Chromium on the file, which is kind to the table: most viewers start slower), looked at, closed, the class is typed
into the line, and at the end the table is saved and imported. What is measured is the machine's part of each label, and
the number of things that a person does.
"""

import csv
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _report import Report, arguments

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

from browser import CHROMIUM, chromium
from PIL import Image
from served import serving

from dpal.campaign.campaign import Campaign
from dpal.campaign.config import checked_config

CLASSES = ("healthy", "ill")
LABELS, QUICK_LABELS, SIDE = 200, 25, 512
# The keystroke-level model (Card, Moran and Newell, 1980): a key takes 0.2 s, pointing and a click 1.3 s.
TYPED, POINTED = 0.2, 1.3


def made(folder: Path, labels: int) -> Path:
    """A campaign that waits for so many labels of images of a usual size."""
    rng = np.random.default_rng(1)
    (folder / "scans").mkdir()
    for number in range(labels + 30):
        pixels = rng.integers(0, 256, (SIDE, SIDE), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "scans" / f"{number:04d}.png")
    options = {"folder": str(folder / "scans"), "classes": list(CLASSES), "size": 16, "channels": 1}
    document = {
        "data": {"source": "image-folder", "options": options},
        "plan": {"target_epsilon": 8, "initial_size": labels, "query_sizes": [10], "batch_size": 16, "epochs": 1,
                 "planner": "step-amplification", "accountant": "rdp", "selection": "random"},
        "model": {"name": "small-cnn"},
    }  # fmt: skip
    Campaign.from_config(folder / "c", checked_config(document)).run()
    return folder / "c"


def on_the_page(folder: Path, browser: Any) -> tuple[float, int]:
    """Seconds until all are answered and saved, and how many were."""
    subprocess.run([sys.executable, "-m", "dpal", "experts", "add", str(folder), "A"], check=True, capture_output=True)  # noqa: S603
    with serving(folder) as served:
        page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
        begun, count = time.perf_counter(), 0
        page.goto(served.links["A"])
        while True:
            page.wait_for_function(
                "count => !document.getElementById('message').hidden"
                " || (document.getElementById('position').textContent.startsWith(`Record ${count + 1} `)"
                " && document.getElementById('question').dataset.ready)",
                arg=count,
            )
            if page.is_visible("#message"):
                break
            page.keyboard.press(str(1 + count % 2))
            count += 1
        page.wait_for_function("() => document.getElementById('connection').textContent.startsWith('All')")
        seconds = time.perf_counter() - begun
        page.context.close()
    return seconds, count


def with_the_table(folder: Path, browser: Any) -> tuple[float, int]:
    """Seconds of exporting, opening every image, and importing, and how many were answered."""
    begun = time.perf_counter()
    out = folder.with_name("week-1")
    command = [sys.executable, "-m", "dpal", "labels"]
    subprocess.run([*command, "export", str(folder), "--to", str(out)], check=True, capture_output=True)  # noqa: S603
    with (out / "labels.csv").open(newline="", encoding="utf-8-sig") as lines:
        rows = list(csv.DictReader(lines))
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    for number, row in enumerate(rows):
        page.goto((out / row["file"]).as_uri())
        page.wait_for_function("() => document.images[0]?.complete && document.images[0].naturalWidth > 0")
        row["label"] = CLASSES[number % 2]
    page.context.close()
    with (out / "labels.csv").open("w", newline="", encoding="utf-8") as lines:
        writer = csv.DictWriter(lines, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    subprocess.run([*command, "import", str(folder), str(out / "labels.csv")], check=True, capture_output=True)  # noqa: S603
    return time.perf_counter() - begun, len(rows)


def main() -> None:
    options = arguments(__doc__)
    if CHROMIUM is None:
        raise SystemExit("needs Chromium (Debian's package chromium)")
    labels = QUICK_LABELS if options.quick else LABELS
    report = Report(name="Seconds per label, scripted", packages=("starlette", "uvicorn", "playwright"))
    # By label: what a person does, and how long that takes at the rates above.
    actions = {
        "the page": (on_the_page, "1 key", TYPED),
        "the table": (
            with_the_table,
            "find and open the image, close it, click the cell, type the class",
            3 * POINTED + TYPED * sum(map(len, CLASSES)) / len(CLASSES),
        ),
    }
    per_label: dict[str, float] = {}
    with chromium() as browser:
        for name, (way, words, hands) in actions.items():
            with tempfile.TemporaryDirectory() as place:
                seconds, count = way(made(Path(place), labels), browser)
            machine = seconds / count
            per_label[name] = machine + hands
            report.row(
                what=name, labels=count, machine_s=machine, person_does=words, hands_s=hands, in_all_s=machine + hands
            )
    ratio = per_label["the table"] / per_label["the page"]
    report.claim("how many times faster than the table, without time to think", ratio, "at least 2", ratio >= 2)
    report.finish(options.json, rates={"letter": TYPED, "point_and_click": POINTED})


if __name__ == "__main__":
    main()
