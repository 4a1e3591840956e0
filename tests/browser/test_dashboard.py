"""The dashboard in Chromium: a campaign from start to certificate; an officer's page; axe-core on all pages."""

import json
import shutil
import time
import zipfile
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, needs_chromium
from command_line import dpal
from labelled_in_browser import READY
from pictures import pixels, write_png
from served import Served, serving

from dpal.campaign.campaign import Campaign
from dpal.errors import CampaignBusy

pytestmark = needs_chromium
AXE = Path(__file__).parents[2] / ".venv/axe/node_modules/axe-core/axe.min.js"
CONFIG = """
data: {source: digits}
evaluation: {source: digits, options: {part: test}, is_public: true}
plan: {target_epsilon: 8, target_delta: 1.0e-4, initial_size: 60, query_sizes: [30], batch_size: 24, epochs: 8,
       planner: step-amplification, accountant: rdp, selection: random}
model: {name: small-cnn}
"""
WIDTHS = ((390, 844), (820, 1180), (1280, 900))


@pytest.fixture(scope="module")
def browser() -> Generator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a campaign that is planned, made once."""
    folder = tmp_path_factory.mktemp("clinic")
    (folder / "c.yaml").write_text(CONFIG)
    write_png(folder / "four.png", pixels(4))
    (folder / "guide.txt").write_text("Which digit is it?")
    for words in (
        ["init", "c", "--config", "c.yaml"],
        ["experts", "add", "c", "Dr. Okafor", "Dr. Lindqvist"],
        ["experts", "add", "c", "Ms. Roy", "--role", "officer"],
        ["experts", "guidelines", "c", "guide.txt", "--example", "a four=four.png"],
    ):
        done = dpal(*words, cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def served(clinic: Path, tmp_path: Path) -> Generator[Served]:
    shutil.copytree(clinic, tmp_path, dirs_exist_ok=True)
    with serving(tmp_path / "c") as running:
        yield running
        assert not any("Traceback" in line for line in running.log), running.log


def page_of(browser: Any, link: str, *, width: int = 1280, height: int = 900, **options: Any) -> Any:
    page = browser.new_context(viewport={"width": width, "height": height}, **options).new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda line: complaints.append(line.text) if "Security" in line.text else None)
    page.complaints = complaints
    page.goto(link)
    return page


def says(page: Any, selector: str, words: str, seconds: int = 60) -> None:
    page.wait_for_function(
        "([selector, words]) => (document.querySelector(selector)?.textContent ?? '').includes(words)",
        arg=[selector, words],
        timeout=1000 * seconds,
    )


def test_a_campaign_from_start_to_certificate(served: Served, browser: Any, tmp_path: Path) -> None:
    page = page_of(browser, served.links["operator"])
    says(page, ".card", "Planned. Next: draw the initial set.")
    assert "#token" not in page.url
    page.click(".card")
    says(page, "#live", "Not running.")
    # What if: the picture follows the sliders.
    page.wait_for_selector("#if-picture:not([hidden])")
    before = page.inner_text("#if-words")
    page.locator("#if-epsilon").press("ArrowLeft")
    page.wait_for_function(
        "before => ![before, 'Planning …'].includes(document.getElementById('if-words').textContent)", arg=before
    )
    # Start; people are waited for; someone is added and removed.
    page.click("#start")
    says(page, "#live", "Running")
    says(page, "#labels-words", "Waiting for Dr. Okafor")
    page.fill("#person-name", "<img src=x onerror=alert(1)>")
    page.click("#add-person button")
    says(page, "#people", "<img src=x onerror=alert(1)>")
    # A slip does nothing: it asks first, and "no" is no.
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.click("text=Remove >> nth=3")
    page.wait_for_timeout(300)
    assert "<img" in page.inner_text("#people")
    page.once("dialog", lambda dialog: dialog.accept())
    page.click("text=Remove >> nth=3")
    page.wait_for_function("() => !document.getElementById('people').textContent.includes('<img')")
    assert page.locator("#people img").count() == 0
    # Stop and go on.
    page.click("#stop")
    says(page, "#live", "Not running.")
    page.click("#start")
    says(page, "#live", "Running")
    # Labels come, a phase trains, and the curve appears.
    folder = tmp_path / "c"
    campaign = Campaign(folder)
    labels = truth()
    deadline = time.monotonic() + 150
    answered = 0
    while not campaign.state().finished:
        assert time.monotonic() < deadline, page.inner_text("#live")
        state = campaign.state()
        if len(state.groups) > answered and state.missing(answered):
            # The run may be writing at this very moment.
            with suppress(CampaignBusy):
                campaign.add_answers({name: labels[name] for name in state.missing(answered)}, source="test")
                answered += 1
        time.sleep(0.5)
    says(page, "#stage", "Finished.")
    says(page, "#held-out", "of the 360 held-out records are right")
    page.wait_for_function("() => document.querySelector('#curve img').naturalWidth > 0")
    assert page.is_disabled("#start") and page.is_disabled("#stop")
    # Downloads: the certificate verifies, and the public report has no internal part.
    with page.expect_download() as download:
        page.click("text=Certificate")
    assert download.value.suggested_filename == "certificate.zip"
    with page.expect_download(timeout=90_000) as download:
        page.click("text=Model and its card")
    assert download.value.suggested_filename == "model.zip" and download.value.path().stat().st_size > 1000
    with zipfile.ZipFile(download.value.path()) as archive:
        assert sorted(archive.namelist()) == [f"model.safetensors{ending}" for ending in ("", ".json", ".md")]
    assert page.complaints == []
    # The officer sees what may be passed on, and no labels.
    officer = page_of(browser, served.links["Ms. Roy"])
    says(officer, "#stage", "Finished.")
    says(officer, "#public-facts", "ε 7.")
    assert "Okafor" not in officer.content() and "question" not in officer.inner_text("main")
    with officer.expect_download() as download:
        officer.click("text=Report")
    assert "Okafor" not in download.value.path().read_text(encoding="utf-8")
    assert officer.complaints == []


def truth() -> dict[str, int]:
    from dpal.data import load_dataset

    digits = load_dataset("digits")
    assert digits.labels is not None
    return {name: int(label) for name, label in zip(digits.ids.tolist(), digits.labels.tolist(), strict=True)}


def findings(page: Any) -> list[str]:
    """What axe-core calls serious or critical."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    checked = page.evaluate("async () => { const r = await axe.run(); return [r.passes.length, r.violations]; }")
    passes, result = checked
    assert passes > 5
    return [
        f"{one['id']}: {json.dumps([node['target'] for node in one['nodes'][:3]])}"
        for one in result
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core (make axe, with npm)")
def test_nobody_is_kept_out(served: Served, browser: Any, tmp_path: Path) -> None:
    """Every page, light and dark, on a phone, a tablet and a desk; dialogs too. Nothing is wider than the screen."""
    assert dpal("run", "c", cwd=tmp_path).returncode == 3
    for look in ("light", "dark"):
        for width, height in WIDTHS:
            options = {"width": width, "height": height, "color_scheme": look}
            label = page_of(browser, served.links["Dr. Okafor"], **options)
            label.wait_for_selector(READY)
            require_sound(label, f"label {look} {width}")
            for button, dialog in (("#open-guidelines", "#guidelines"), ("#open-settings", "#settings")):
                label.click(button)
                label.wait_for_selector(f"{dialog}[open]")
                require_sound(label, f"{dialog} {look} {width}")
                label.keyboard.press("Escape")
            label.context.set_offline(True)
            label.keyboard.press("4")
            label.wait_for_function(
                "() => document.getElementById('connection').textContent.startsWith('No connection')"
            )
            require_sound(label, f"offline {look} {width}")
            operator = page_of(browser, served.links["operator"], **options)
            operator.wait_for_selector(".card")
            require_sound(operator, f"overview {look} {width}")
            operator.click(".card")
            operator.wait_for_selector("#if-picture:not([hidden])")
            require_sound(operator, f"campaign {look} {width}")
            officer = page_of(browser, served.links["Ms. Roy"], **options)
            officer.wait_for_selector("#view:not([hidden])")
            require_sound(officer, f"public {look} {width}")
            nobody = page_of(browser, served.base, **options)
            nobody.wait_for_selector("#message:not([hidden])")
            require_sound(nobody, f"nobody {look} {width}")
            for page in (label, operator, officer, nobody):
                page.context.close()


def require_sound(page: Any, where: str) -> None:
    assert findings(page) == [], where
    wide = page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, f"{where} is {wide} pixels too wide"


def test_the_page_by_keyboard_alone(served: Served, browser: Any, tmp_path: Path) -> None:
    """Every control is reached by Tab, and answered by Enter or Space, with single keys switched off."""
    assert dpal("run", "c", cwd=tmp_path).returncode == 3
    page = page_of(browser, served.links["Dr. Okafor"])
    page.wait_for_selector(READY)
    page.click("#open-settings")
    page.uncheck("#shortcuts")
    page.keyboard.press("Escape")
    first = page.inner_text("#name")
    page.keyboard.press("4")
    page.wait_for_timeout(200)
    assert page.inner_text("#name") == first
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("() => document.activeElement.id || document.activeElement.textContent"))
    controls = "open-guidelines open-settings zoom-in invert brightness note skip cannot-tell"
    for control in controls.split():
        assert control in reached, control
    page.locator("#choices button:enabled").nth(3).focus()
    page.keyboard.press("Enter")
    page.wait_for_function("first => document.getElementById('name').textContent !== first", arg=first)
    says(page, "#spoken", "3. Record 2")
    assert page.complaints == []
