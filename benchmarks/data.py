"""From disk to the first batch: Fashion-MNIST from Debian's package, and images decoded while training waits."""

import io
import subprocess
import sys
import time

import numpy as np
from _report import Report, arguments
from PIL import Image

from dpal.data import images as images_module
from dpal.data.images import ImageRecords, image_records
from dpal.data.named.fashion_mnist import DEBIAN_FOLDER

_FIRST_BATCH = """
import time
start = time.perf_counter()
import numpy as np
from dpal.data import load_dataset
from dpal.training.sources import source_for
imported = time.perf_counter()
pool = load_dataset("fashion-mnist")
source = source_for(pool.records, pool.labels, device="cpu")
batch, targets = source.batch(np.arange(0, len(pool), 30))
print(len(pool), imported - start, time.perf_counter() - imported)
"""


def first_batch(report: Report) -> None:
    """In a process of its own, so that nothing is warm but the disk's cache."""
    if not DEBIAN_FOLDER.is_dir():
        report.row(what="Fashion-MNIST: Debian's package dataset-fashion-mnist is not installed", seconds="", rate="")
        return
    done = subprocess.run([sys.executable, "-c", _FIRST_BATCH], check=True, capture_output=True, text=True)  # noqa: S603
    count, importing, reading = (float(each) for each in done.stdout.split())
    report.row(what="import numpy, torch and dpal", seconds=importing, rate="")
    report.row(what=f"Fashion-MNIST, {count:,.0f} records, disk to first batch of 2,000", seconds=reading, rate="")
    report.claim("Fashion-MNIST from disk to first batch, seconds", reading, "< 3", reading < 3)
    together = importing + reading
    report.claim("the same with all imports, seconds", together, "< 3, not asked for", together < 3)


def decoding(report: Report, count: int) -> None:
    """JPEG images of 512 × 512, to 128 × 128, by one thread and by all."""
    rng = np.random.default_rng(0)
    small = rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(small).resize((512, 512)).save(buffer, format="JPEG", quality=90)
    ids = np.arange(count).astype(np.str_)
    records: ImageRecords = image_records([buffer.getvalue()] * count, ids, size=128, channels=3)
    everyone = np.arange(count)
    rates: dict[int, float] = {}
    all_workers = images_module.decoding_workers
    for workers in (1, all_workers()):
        images_module.decoding_workers = lambda workers=workers: workers
        start = time.perf_counter()
        records.read(everyone)
        seconds = time.perf_counter() - start
        rates[workers] = count / seconds
        report.row(what=f"JPEG 512 × 512 to 128 × 128, {workers} thread(s)", seconds=seconds, rate=rates[workers])
    images_module.decoding_workers = all_workers
    if len(rates) > 1:
        gain = rates[max(rates)] / rates[1]
        report.claim(f"decoding with {max(rates)} threads against one, times", gain, "> 1.3", gain > 1.3)


def main() -> None:
    options = arguments(__doc__)
    report = Report(name="data", packages=("torch", "pillow"))
    first_batch(report)
    decoding(report, 300 if options.quick else 2000)
    report.finish(options.json)


if __name__ == "__main__":
    main()
