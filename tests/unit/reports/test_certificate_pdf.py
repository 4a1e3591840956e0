from pathlib import Path
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from small_campaigns import linear_model, linear_plan, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.reports.certificate import certificate_of
from dpal.reports.certificate_pdf import pages, write_pdf


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("certificate") / "clinic"
    Campaign.create(folder, plan=linear_plan(), pool=linear_pool(), model=linear_model(), oracle="simulated").run()
    return certificate_of(folder)


def test_it_is_two_pages_of_pdf_and_no_text_leaves_them(document: dict[str, Any], tmp_path: Path) -> None:
    write_pdf(document, tmp_path / "c.pdf")
    content = (tmp_path / "c.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    assert content.count(b"/Type /Page\n") + content.count(b"/Type /Page ") == 2
    many = document | {"mechanisms": document["mechanisms"] * 30}
    for certificate in (document, many):
        for figure in pages(certificate):
            FigureCanvasAgg(figure).draw()
            for text in figure.texts:
                box = text.get_window_extent()
                assert figure.bbox.x0 < box.x0, text.get_text()
                assert box.x1 < figure.bbox.x1, text.get_text()
                # Nothing but the footer comes near the lower edge.
                assert text.get_gid() == "footer" or box.y0 > 0.05 * figure.bbox.y1, text.get_text()
