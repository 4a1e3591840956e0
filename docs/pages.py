"""Takes the pictures of the labelling page and the dashboard, in Chromium, from a campaign that is half labelled."""

import subprocess
import sys
import tempfile
from pathlib import Path

from dpal.campaign.campaign import Campaign
from dpal.campaign.config import checked_config
from dpal.experiments.demo import digits_document

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

from browser import chromium
from served import serving

IMAGES = Path(__file__).parent / "images"
WIDTHS = {390: 844, 820: 1100, 1280: 860}
GUIDE = "Which digit is it?\n\nIf it could be two, choose “cannot tell”."


def campaign_in(folder: Path) -> Path:
    """A campaign whose first model is trained, and whose experts have begun with the second round."""
    plan = {"planner": "step-amplification", "initial_size": 120, "query_sizes": [60]}
    document = digits_document(plan | {"selection": "random"}) | {"oracle": "files"}
    campaign = Campaign.from_config(folder / "clinic", checked_config(document))
    campaign.run()
    digits = campaign.open_data()
    first = digits.take(campaign.state().groups[0])
    answers = dict(zip(first.ids.tolist(), first.labels, strict=True))
    campaign.add_answers(answers, source="a file")
    campaign.run()
    (folder / "guide.txt").write_text(GUIDE, encoding="utf-8")
    for words in (
        ["experts", "add", "clinic", "Dr. Okafor", "Dr. Lindqvist"],
        ["experts", "add", "clinic", "Prof. Sato", "--role", "arbiter"],
        ["experts", "arrange", "clinic", "--overlap", "0.3"],
        ["experts", "guidelines", "clinic", "guide.txt"],
    ):
        subprocess.run([sys.executable, "-m", "dpal", *words], cwd=folder, check=True)  # noqa: S603
    return campaign.folder


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        place = campaign_in(Path(scratch))
        with serving(place) as served, chromium() as browser:
            for look in ("light", "dark"):
                for width, height in WIDTHS.items():
                    context = browser.new_context(
                        viewport={"width": width, "height": height}, color_scheme=look
                    )
                    page = context.new_page()
                    page.goto(served.links["Dr. Okafor"])
                    page.wait_for_function(
                        "() => document.querySelector('#record img')?.naturalWidth > 0"
                    )
                    for key in "37":
                        page.keyboard.press(key)
                        page.wait_for_timeout(400)
                    page.screenshot(path=IMAGES / f"labelling-{width}-{look}.png")
                    page.goto(f"{served.links['operator']}")
                    page.wait_for_selector(".card")
                    page.click(".card")
                    page.wait_for_selector("#if-picture:not([hidden])")
                    page.wait_for_function(
                        "() => document.querySelector('#curve img').naturalWidth > 0"
                    )
                    page.screenshot(path=IMAGES / f"dashboard-{width}-{look}.png")
                    context.close()


if __name__ == "__main__":
    main()
