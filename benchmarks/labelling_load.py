"""Twenty experts at one answer a second while a phase trains, and a page on a pool of a million records.

    python benchmarks/labelling_load.py [--quick] [--json FILE]

The experts are connections of their own, which fetch each record's question and picture as the page does, and then
answer. The same campaign trains all the while, on every core, in another process. An answer is acknowledged when it is
on the disk. The page on the large pool is opened in Chromium.
"""

import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import quote

import numpy as np
from _report import Report, arguments

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

from browser import CHROMIUM, chromium
from served import Served, serving

from dpal.campaign.campaign import Campaign
from dpal.campaign.config import checked_config
from dpal.campaign.inbox import Inbox
from dpal.campaign.labelling_desk import LabellingDesk

# Labels that are there before, so that there is something to train on.
FILED = 400
EXPERTS, SECONDS, QUICK_SECONDS = 20, 300, 12
ACKNOWLEDGED, OPENED = 0.1, 1.0
RECORDS, SELECTED, QUICK_RECORDS = 1_000_000, 5_000, 50_000


def dpal(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "dpal", *map(str, words)], capture_output=True, text=True, check=True)  # noqa: S603


def training_campaign(folder: Path, seconds: int) -> Path:
    """A campaign whose first phase trains for longer than the experts label, with a few labels from a file."""
    document = {
        "data": {"source": "digits"},
        "plan": {
            "target_epsilon": 8, "target_delta": 1e-4, "planner": "step-amplification", "accountant": "rdp",
            "selection": "random", "initial_size": seconds + FILED, "query_sizes": [20], "batch_size": 256,
            "epochs": 400 * seconds,
        },
        "model": {"name": "small-cnn"},
    }  # fmt: skip
    campaign = Campaign.from_config(folder, checked_config(document))
    names = [f"Expert {number}" for number in range(1, EXPERTS + 1)]
    dpal("experts", "add", folder, *names)
    dpal("experts", "arrange", folder, "--see", "everyone")
    subprocess.run([sys.executable, "-m", "dpal", "run", str(folder)], capture_output=True, check=False)  # noqa: S603
    campaign.add_answers(dict.fromkeys(campaign.state().groups[0][:FILED], 1), source="a file")
    campaign.close_round()
    return folder


class Expert(threading.Thread):
    """One answer a second; notes how long each took to be acknowledged."""

    def __init__(self, served: Served, name: str, mark: str, start: float, seconds: int) -> None:
        super().__init__()
        self.served, self.begin, self.seconds = served, start, seconds
        self.cookie = f"dpal-c-{mark}={served.token(name)}"
        self.taken: list[float] = []
        self.failures: list[str] = []

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=60)
        headers = {
            "Origin": self.served.base, "Content-Type": "application/json", "Cookie": self.cookie,
        }  # fmt: skip

        def ask(method: str, path: str, body: object = None) -> bytes:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            content = response.read()
            if response.status != 200:
                self.failures.append(f"{path}: {response.status} {content[:200]!r}")
            return content

        waiting = json.loads(ask("GET", "/c/c/api/queue"))["waiting"]
        for number, name in enumerate(waiting[: self.seconds]):
            time.sleep(max(0.0, self.begin + number - time.monotonic()))
            ask("GET", f"/c/c/api/question?name={quote(name)}")
            ask("GET", f"/c/c/api/picture?name={quote(name)}&number=0")
            started = time.perf_counter()
            answer = {"question": name, "answer": number % 10, "note": "", "key": f"load-{number:06d}"}
            ask("POST", "/c/c/api/answer", answer)
            self.taken.append(time.perf_counter() - started)
        connection.close()


def under_load(report: Report, folder: Path, seconds: int) -> None:
    training_campaign(folder, seconds)
    with serving(folder) as served:
        run = subprocess.Popen([sys.executable, "-m", "dpal", "run", str(folder)], stdout=subprocess.DEVNULL)  # noqa: S603
        while Campaign(folder).state().open_charge is None:
            time.sleep(0.2)
        start = time.monotonic() + 3
        names = [name for name in served.links if name.startswith("Expert")]
        # They do not all press at the same moment.
        mark = LabellingDesk(folder).mark
        experts = [Expert(served, name, mark, start + place / EXPERTS, seconds) for place, name in enumerate(names)]
        for expert in experts:
            expert.start()
        for expert in experts:
            expert.join()
        still_training = run.poll() is None and Campaign(folder).state().open_charge is not None
        run.terminate()
        run.wait()
    taken = sorted(second for expert in experts for second in expert.taken)
    failures = [failure for expert in experts for failure in expert.failures]
    saved = sum(entry.body["kind"] == "answer" for entry in Inbox(folder).after(0))
    if failures or saved != len(taken) or not still_training:
        raise SystemExit(f"{failures[:3]} failed; {saved} of {len(taken)} are saved; {still_training=}")
    percentile = taken[int(0.95 * len(taken))]
    report.row(
        what=f"{EXPERTS} experts, one answer a second each for {seconds} s, while a phase trains",
        answers=len(taken),
        median_ms=1000 * statistics.median(taken),
        percentile_95_ms=1000 * percentile,
        slowest_ms=1000 * taken[-1],
    )
    words = "95th percentile until an answer is acknowledged, seconds"
    report.claim(words, percentile, f"below {ACKNOWLEDGED}", percentile < ACKNOWLEDGED)


def large_pool(report: Report, folder: Path, records: int) -> None:
    """How long a person waits from the click on a link until the first picture is there."""
    images = np.random.default_rng(1).integers(0, 256, (records, 1, 8, 8), dtype=np.uint8)
    np.save(folder / "images.npy", images)
    document = {
        "data": {"source": "numpy", "options": {"file": str(folder / "images.npy"), "classes": ["no", "yes"]}},
        "plan": {"target_epsilon": 8, "initial_size": SELECTED, "query_sizes": [1000], "batch_size": 256, "epochs": 1,
                 "planner": "step-amplification", "accountant": "rdp", "selection": "random"},
        "model": {"name": "small-cnn"},
    }  # fmt: skip
    place = folder / "c"
    Campaign.from_config(place, checked_config(document))
    subprocess.run([sys.executable, "-m", "dpal", "run", str(place)], capture_output=True, check=False)  # noqa: S603
    dpal("experts", "add", place, "A")
    started = time.perf_counter()
    with serving(place) as served, chromium() as browser:
        ready = time.perf_counter() - started
        seconds: list[float] = []
        for _ in range(5):
            page = browser.new_context().new_page()
            begun = time.perf_counter()
            page.goto(served.links["A"])
            page.wait_for_function("() => document.querySelector('#record img')?.naturalWidth > 0")
            seconds.append(time.perf_counter() - begun)
            page.context.close()
    slowest = max(seconds)
    report.row(
        what=f"a page on a pool of {records:,} records, {SELECTED:,} selected; server ready after {ready:.1f} s",
        answers=0,
        median_ms=1000 * statistics.median(seconds),
        percentile_95_ms=1000 * slowest,
        slowest_ms=1000 * slowest,
    )
    words = "seconds until the first picture is there, slowest of 5"
    report.claim(words, slowest, f"below {OPENED:g}", slowest < OPENED)


def main() -> None:
    options = arguments(__doc__)
    report = Report(name="Labelling under load", packages=("starlette", "uvicorn", "torch"))
    with tempfile.TemporaryDirectory() as place:
        under_load(report, Path(place, "c"), QUICK_SECONDS if options.quick else SECONDS)
    if CHROMIUM is not None:
        with tempfile.TemporaryDirectory() as place:
            large_pool(report, Path(place), QUICK_RECORDS if options.quick else RECORDS)
    report.finish(options.json)


if __name__ == "__main__":
    main()
