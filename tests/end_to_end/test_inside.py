"""Selections that stay inside: no document that may be passed on tells which records were chosen, or how many."""

import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import dpal
from matplotlib.figure import Figure
from rich.console import Console, RenderableType
from small_campaigns import linear_held_out, linear_model, linear_plan

from dpal.campaign.campaign import Campaign
from dpal.campaign.facts import Selected, to_text
from dpal.campaign.store import chained
from dpal.data import Pool, from_arrays
from dpal.planning.promises import WORDS, expected_labels
from dpal.reports.campaign_data import report_data
from dpal.reports.campaign_plots import learning_figure
from dpal.reports.campaign_report import write_report
from dpal.reports.campaign_table import verification_view
from dpal.reports.certificate_files import json_file_of, write_certificate
from dpal.reports.certificate_pdf import pages
from dpal.reports.comparison import run_of
from dpal.reports.comparison_report import write_comparison
from dpal.reports.plan_table import plan_view
from dpal.selection.cut import CutSelection
from dpal.selection.selection import NOBODY, Chosen

RECORDS, INITIAL, QUERIES = 1_811, 211, (640, 400)
# What the cuts really ask for: numbers that are in no plan.
ASKED = (613, 379)
COUNTS = (*ASKED, INITIAL + ASKED[0], INITIAL + sum(ASKED), sum(ASKED), RECORDS - INITIAL - sum(ASKED))


def pool() -> Pool:
    values = np.random.default_rng(5).normal(size=(RECORDS, 4)).astype(np.float32)
    labels = (values[:, 0] > 0).astype(np.int64)
    return from_arrays(values, classes=["no", "yes"], labels=labels, ids=[f"case-{i:04d}" for i in range(RECORDS)])


def printed(view: RenderableType) -> str:
    console = Console(width=200, file=StringIO())
    console.print(view)
    return console.file.getvalue()  # type: ignore[attr-defined]


def leaks(text: str) -> list[str]:
    """Real counts, and ids of any record, in a text. Figures inside a page are curves, which another test reads."""
    text = re.sub(r"(?s)<svg.*?</svg>", "", text)
    counts = [f"{count:,}" for count in COUNTS] + [str(count) for count in COUNTS]
    found = [count for count in counts if re.search(rf"(?<![\w.,]){count}(?!\w|[.,]\d)", text)]
    return sorted({*found, *re.findall(r"case-\d+", text)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inside") / "clinic"
    asked = iter(ASKED)

    def choose(selection: CutSelection, grid: Any, randomness: Any) -> Chosen:
        return Chosen(to_label=np.arange(next(asked)), retired=NOBODY, threshold=17.0)

    told: list[str] = []
    plan = linear_plan(pool_size=RECORDS, initial_size=INITIAL, query_sizes=QUERIES, batch_size=50, selections="inside")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CutSelection, "_choose", choose)
        campaign = Campaign.create(
            folder,
            plan=plan,
            pool=pool(),
            model=linear_model(),
            oracle="simulated",
            evaluation=linear_held_out(40),
            evaluation_is_public=True,
        )
        campaign.load(
            pool=pool(),
            model=linear_model(),
            oracle="simulated",
            evaluation=linear_held_out(40),
            evaluation_is_public=True,
            tell=told.append,
        )
        campaign.run(go_on=True)
        card = campaign.export_model(folder.parent / "model.safetensors")
    (folder.parent / "card.json").write_text(json.dumps(card, ensure_ascii=False))
    (folder.parent / "told.txt").write_text("\n".join(told))
    assert [len(group) for group in campaign.state().groups] == [INITIAL, *ASKED]
    return folder


def public_documents(folder: Path, place: Path) -> dict[str, str]:
    """Everything that a campaign with selections inside may pass on."""
    campaign = Campaign(folder)
    write_report(folder, place / "report.html", internal=False, baseline=folder)
    document = write_certificate(folder, place / "c.pdf")
    write_comparison([run_of(folder, "ours"), run_of(folder, "again")], place / "comparison.html")
    texts = {
        path.name: path.read_text() for path in place.iterdir() if path.suffix in (".html", ".json", ".md", ".tex")
    }
    verification = campaign.verify()
    return texts | {
        "c.pdf": "\n".join(text.get_text() for page in pages(document) for text in page.texts),
        "card": (folder.parent / "card.json").read_text(),
        "run": (folder.parent / "told.txt").read_text(),
        "status": json.dumps({k: v for k, v in campaign.status().to_json().items() if k != "internal"}),
        "verify": json.dumps(verification.to_json()) + printed(verification_view(verification)),
        "verify certificate": dpal("verify", json_file_of(place / "c.pdf")).stdout,
        "ledger": json.dumps(campaign.ledger()),
        "plan": campaign.plan.to_text() + printed(plan_view(campaign.plan)),
    }


def test_no_public_document_has_a_real_count_or_an_id(folder: Path, tmp_path: Path) -> None:
    documents = public_documents(folder, tmp_path)
    assert {"report.html", "report.json", "comparison.md", "comparison.tex", "c.pdf.json"} <= set(documents)
    assert {name: leaks(text) for name, text in documents.items() if leaks(text)} == {}
    planned = sum(expected_labels(Campaign(folder).plan))
    for name in ("report.html", "comparison.md"):
        assert f"{planned:,}" in documents[name], name
        assert "planned" in documents[name], name


def test_the_search_finds_what_is_internal(folder: Path, tmp_path: Path) -> None:
    """The twin: the operator's own documents have the counts, and the search finds them there."""
    write_report(folder, tmp_path / "own.html")
    assert "1,203" in leaks((tmp_path / "own.html").read_text())
    assert "1203" in leaks(json.dumps(Campaign(folder).status().to_json()))
    assert leaks("613 of case-0007") == ["613", "case-0007"]
    assert leaks("0.613, 6130, 613.5, a613, 1,613") == []


def axis_values(figure: Figure) -> list[list[float]]:
    return [np.asarray(line.get_xdata(), dtype=float).tolist() for line in figure.axes[0].lines]


def test_the_curve_is_drawn_at_planned_numbers(folder: Path) -> None:
    """Also in the operator's report: a figure is easily copied."""
    for internal in (True, False):
        data = report_data(folder, internal=internal)
        sizes = expected_labels(Campaign(folder).plan)
        assert data["labels_by_phase"] == [sum(sizes[:1]), sum(sizes[:2]), sum(sizes)]
        figure = learning_figure({"ours": data}, "accuracy")
        # The line of the majority class goes from end to end.
        assert [values for values in axis_values(figure) if values != [0.0, 1.0]] == [data["labels_by_phase"]]
        assert figure.axes[0].get_xlabel() == "labels planned"


def test_every_document_states_the_promise(folder: Path, tmp_path: Path) -> None:
    words, documents = WORDS["inside"], public_documents(folder, tmp_path)
    for name in ("c.pdf.json", "card", "verify", "verify certificate", "plan"):
        assert words.short in " ".join(documents[name].split()), name
    for name in ("report.html", "report.json", "c.pdf.json", "card"):
        assert words.meaning in documents[name], name
    assert words.in_full in " ".join(documents["c.pdf"].split())
    assert words.short in " ".join(dpal("status", folder).stdout.split())


def test_nothing_public_says_whether_anyone_was_asked(tmp_path: Path) -> None:
    """A report between a selection and its training is the same whether labels are missing or nobody was asked."""
    stages: list[tuple[object, object]] = []
    for number, chosen in enumerate((NOBODY, np.arange(3))):
        folder = tmp_path / str(number)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(CutSelection, "_choose", lambda *_, chosen=chosen: Chosen(to_label=chosen, retired=NOBODY))
            sizes = {"pool_size": RECORDS, "initial_size": INITIAL, "query_sizes": (640,), "batch_size": 50}
            plan = linear_plan(selection="cut", **sizes)
            campaign = Campaign.create(folder, plan=plan, pool=pool(), model=linear_model())
            campaign.run(go_on=True)
            campaign.add_answers(dict.fromkeys(campaign.state().groups[0], "yes"), source="test")
            if number == 0:
                _stop_before_the_last_phase(campaign)
            else:
                campaign.run(go_on=True)
        assert len(campaign.state().selected) == 2
        public = report_data(folder, internal=False)["status"]
        stages.append((public["stage"], public["next_step"]))
    assert stages[0] == stages[1] == ("labelling or training", "train phase 2")


class _Stopped(Exception):
    """The operator stops the machine."""


def _stop_before_the_last_phase(campaign: Campaign) -> None:
    train = campaign.runner._train

    def stop(writer: Any, phase: int) -> None:
        if phase == 1:
            raise _Stopped
        train(writer, phase)

    campaign.runner._train = stop  # type: ignore[method-assign]
    with pytest.raises(_Stopped):
        campaign.run(go_on=True)


def test_the_ledgers_hash_confirms_no_guessed_list(folder: Path) -> None:
    """The hash is public, and whoever has every other record can compute both lists: without the salt it would tell."""
    recorded = [entry for entry in Campaign(folder).reader.recorded if isinstance(entry.fact, Selected)]
    assert len({entry.fact.salt for entry in recorded if isinstance(entry.fact, Selected)}) == len(recorded) == 3
    everything = list(Campaign(folder).reader.recorded)
    for entry in recorded:
        body = json.loads(to_text(entry.fact))
        previous = everything[entry.number - 2].hash
        assert chained(previous, entry.number, entry.at, "selected", to_text(entry.fact)) == entry.hash
        guess = json.dumps(body | {"salt": "00" * 32}, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        assert chained(previous, entry.number, entry.at, "selected", guess) != entry.hash


def test_released_selections_stay_public(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    plan = linear_plan(
        pool_size=RECORDS, initial_size=INITIAL, query_sizes=QUERIES, batch_size=50, selections="released"
    )
    Campaign.create(folder, plan=plan, pool=pool(), model=linear_model(), oracle="simulated").run(go_on=True)
    status, document = Campaign(folder).status(), Campaign(folder).status().to_json()
    internal: Any = document["internal"]
    assert document["asked"] == status.asked == sum(len(group) for group in Campaign(folder).state().groups)
    assert "asked" not in internal
    assert "retired" not in internal
    assert status.last_day == document["last_day"]
    data = report_data(folder, internal=False)
    assert data["labels_by_phase"][-1] == status.asked
    assert not data["labels_are_planned"]
    text = printed(verification_view(Campaign(folder).verify()))
    assert WORDS["released"].short in text
    assert str(len(Campaign(folder).state().groups[1])) in text
