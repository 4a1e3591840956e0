"""The pool must be the one that the campaign was created with."""

from dataclasses import replace
from pathlib import Path

import pytest
from small_campaigns import linear_model, linear_plan, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.errors import DamagedCampaign, InvalidArgument


def test_another_pool_or_acquisition_is_refused(tmp_path: Path) -> None:
    Campaign.create(tmp_path / "c", plan=linear_plan(), pool=linear_pool(), model=linear_model())
    other = linear_pool()
    with pytest.raises(DamagedCampaign, match=r"1 record.* no longer in the data: 'r23'"):
        Campaign.open(tmp_path / "c", pool=other.take(other.ids[:-1]), model=linear_model())
    with pytest.raises(DamagedCampaign, match=r"1 record.* not in the campaign .*: 'r24'"):
        Campaign.open(tmp_path / "c", pool=linear_pool(25), model=linear_model())
    with pytest.raises(InvalidArgument, match="pool"):
        Campaign.open(tmp_path / "c", model=linear_model())
    with pytest.raises(InvalidArgument, match="model"):
        Campaign.open(tmp_path / "c", pool=other)


def test_other_classes_are_noticed_wherever_labels_come_in(tmp_path: Path) -> None:
    pool = linear_pool()
    campaign = Campaign.create(tmp_path / "c", plan=linear_plan(), pool=pool, model=linear_model())
    campaign.run()
    swapped = replace(pool, classes=pool.classes[::-1])
    (tmp_path / "labels.csv").write_text("id,label\n")
    for attempt in (
        lambda: campaign.import_labels(tmp_path / "labels.csv", swapped),
        lambda: campaign.export_labels(tmp_path / "out", swapped),
        lambda: Campaign.open(tmp_path / "c", pool=swapped, model=linear_model()),
    ):
        with pytest.raises(DamagedCampaign, match="yes, no"):
            attempt()
