"""A campaign on an encoder's features, from the private mean to the certificate."""

import copy
import json
import warnings
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tiny_encoder import encoded_campaign, options

from dpal.campaign.campaign import Campaign
from dpal.errors import InvalidArgument
from dpal.reports.certificate import certificate_of, verify_certificate
from dpal.reports.certificate_files import write_certificate


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mean") / "campaign"
    encoded_campaign(folder, seed=None, not_private=False).run(go_on=True)
    return folder


def test_every_epsilon_has_the_mean_in_it_and_dp_accounting_agrees(finished: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rdp = pytest.importorskip("dp_accounting.rdp", reason="needs dp-accounting (pip install dpal[peers])")
        from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    campaign = Campaign(finished)
    verification = campaign.verify()
    assert verification.holds and verification.epsilon_spent <= 8
    ledger = campaign.ledger()
    assert ledger["mean"] == {"noise_multiplier": 20.0}
    # A record of the initial set is part of the mean and of every phase.
    accountant = rdp.RdpAccountant()
    accountant.compose(GaussianDpEvent(ledger["mean"]["noise_multiplier"]))
    for phase in ledger["phases"]:
        step = PoissonSampledDpEvent(phase["sampling_probabilities"][0], GaussianDpEvent(phase["noise_multiplier"]))
        accountant.compose(step, phase["steps"])
    expected = accountant.get_epsilon(campaign.plan.setting.target_delta)
    stated = campaign.plan.groups[0].epsilon_by_phase[-1]
    assert stated == pytest.approx(expected, rel=1e-2)


def test_the_released_mean_is_what_the_exported_head_subtracts(finished: Path, tmp_path: Path) -> None:
    mean = Campaign(finished).state().mean
    assert mean is not None
    Campaign.open(finished, **options()).export_model(tmp_path / "head.safetensors")
    centre = load_file(tmp_path / "head.safetensors")["centre"]
    assert torch.allclose(centre, torch.tensor(mean, dtype=centre.dtype))
    assert centre.abs().max() > 0


def test_the_certificate_has_the_mean_on_its_pages_and_cannot_lose_it(finished: Path, tmp_path: Path) -> None:
    document = certificate_of(finished)
    assert document["released"][0] == "a private mean of the features of all records in the pool"
    assert document["mechanisms"][0]["where"] == "mean of the pool's features"
    write_certificate(finished, tmp_path / "certificate.pdf")
    assert verify_certificate(json.loads((tmp_path / "certificate.pdf.json").read_text())) > 0
    for changed in (None, {"noise_multiplier": 40.0}):
        edited = copy.deepcopy(document)
        edited["charges"]["mean"] = changed
        with pytest.raises(InvalidArgument, match=r"mean|epsilon"):
            verify_certificate(edited)


def test_another_models_plan_may_not_have_a_mean(tmp_path: Path) -> None:
    from small_campaigns import linear_campaign, linear_plan

    with pytest.raises(InvalidArgument, match="only `features`"):
        linear_campaign(tmp_path / "c", plan=linear_plan(mean_noise_multiplier=20.0))
    assert not (tmp_path / "c").exists()
