"""Reports in a real browser: nothing is fetched, nothing fails, every figure can be seen on a phone and on a desk."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from small_campaigns import create

from dpal.reports.campaign_report import write_report
from dpal.reports.comparison import run_of
from dpal.reports.comparison_report import write_comparison

BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium (Debian's package chromium)")
# Runs in the page after everything else, and writes what it saw into the page.
PROBE = """<script>
window.addEventListener("load", () => {
  const figures = [...document.querySelectorAll("figure svg")].map(each => {
    const box = each.getBoundingClientRect();
    return {left: box.left, right: box.right, width: box.width, height: box.height};
  });
  const out = document.createElement("pre");
  out.id = "probe";
  out.textContent = JSON.stringify({
    figures, width: window.innerWidth, page: document.documentElement.scrollWidth,
    fetched: performance.getEntriesByType("resource").map(each => each.name),
  });
  document.body.appendChild(out);
});
</script></body>"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("pages")
    create(root / "planned")
    create(root / "private", seed=None).run(go_on=True)
    create(root / "simulated").run()
    found = {name: write_report(root / name, root / f"{name}.html") for name in ("planned", "private", "simulated")}
    runs = [run_of(root / name, name) for name in ("private", "simulated") for _ in range(3)]
    return found | {"comparison": write_comparison(runs, root / "comparison.html")}


def opened(file: Path, width: int, *, dark: bool = False) -> tuple[dict[str, object], str]:
    """What the probe saw, and what the browser complained about."""
    probed = file.with_name(f"{file.stem}-probed.html")
    probed.write_text(file.read_text(encoding="utf-8").replace("</body>", PROBE), encoding="utf-8")
    assert BROWSER is not None
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={width},900"]
    options += ["--enable-logging=stderr", "--virtual-time-budget=3000", "--dump-dom"]
    # Whatever name it might look up leads nowhere.
    options += ["--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking", "--no-first-run"]
    options += [f"--user-data-dir={file.parent / 'profile'}"] + (["--force-dark-mode"] if dark else [])
    done = subprocess.run(
        [BROWSER, *options, probed.as_uri()], capture_output=True, text=True, timeout=120, check=False
    )
    match = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)
    assert match is not None, done.stderr[-2000:]
    complaints = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    return json.loads(match[1].replace("&amp;", "&")), complaints


@pytest.mark.parametrize("name", ["planned", "private", "simulated", "comparison"])
@pytest.mark.parametrize("width", [390, 1280])
def test_pages_open_offline_with_every_figure_in_sight(pages: dict[str, Path], name: str, width: int) -> None:
    seen, complaints = opened(pages[name], width)
    assert complaints == ""
    assert seen["fetched"] == []
    figures = seen["figures"]
    assert isinstance(figures, list)
    assert len(figures) == {"planned": 1, "private": 3, "simulated": 3, "comparison": 1}[name]
    for box in figures:
        assert box["width"] > 250
        assert box["height"] > 80
        assert box["left"] >= 0
        assert box["right"] <= seen["width"] + 1
    # Nothing sticks out to the side: wide tables scroll by themselves.
    assert seen["page"] <= seen["width"] + 1


def test_the_probe_would_see_a_page_that_fetches_and_fails(tmp_path: Path) -> None:
    """A twin with planted faults: a script that throws and an image from elsewhere."""
    file = tmp_path / "bad.html"
    file.write_text('<html><body><img src="http://example.com/x.png"><script>nothing()</script></body></html>')
    seen, complaints = opened(file, 800)
    assert "nothing is not defined" in complaints
    assert seen["fetched"] == ["http://example.com/x.png"]
