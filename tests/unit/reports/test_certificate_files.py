import json
from pathlib import Path

import pytest
from small_campaigns import linear_model, linear_plan, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.errors import InvalidArgument, MissingData
from dpal.reports.assumptions import assumptions_of
from dpal.reports.certificate import verify_certificate
from dpal.reports.certificate_files import NotVerified, check_certificate, read_certificate, write_certificate
from dpal.reports.signature import new_keys


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with keys, a campaign and its signed certificate."""
    folder = tmp_path_factory.mktemp("desk")
    new_keys(folder / "keys")
    campaign = Campaign.create(
        folder / "clinic", plan=linear_plan(), pool=linear_pool(), model=linear_model(), oracle="simulated"
    )
    campaign.run()
    campaign.export_model(folder / "model.safetensors")
    write_certificate(folder / "clinic", folder / "c.pdf", sign_with=folder / "keys/private.pem")
    return folder


def test_what_is_written_is_read_and_checked(desk: Path) -> None:
    file = desk / "c.pdf.json"
    document = read_certificate(file)
    assert (desk / "c.pdf").read_bytes().startswith(b"%PDF")
    assert document["assumptions"] == assumptions_of(promise="inside", accountant="rdp", foreign_code=(), unit="record")
    checked = check_certificate(file, key=desk / "keys/public.pem", model=desk / "model.safetensors")
    assert document["epsilon"] - 1e-6 <= checked.epsilon <= document["epsilon"]
    assert checked.signature is not None
    assert "by the key that was given" in checked.signature_words()
    assert "not who signed" in check_certificate(file).signature_words()


def test_what_is_wrong_in_the_certificate_is_not_the_readers_mistake(desk: Path, tmp_path: Path) -> None:
    document = read_certificate(desk / "c.pdf.json")
    file = tmp_path / "c.json"
    file.write_text(json.dumps(document | {"campaign": "another"}))
    with pytest.raises(NotVerified, match="changed after it was signed"):
        check_certificate(file)
    with pytest.raises(NotVerified, match="SHA-256"):
        check_certificate(desk / "c.pdf.json", model=desk / "c.pdf")
    unsigned = {name: value for name, value in document.items() if name not in ("signature", "public_key")}
    file.write_text(json.dumps(unsigned))
    assert "anyone could have written" in check_certificate(file).signature_words()
    with pytest.raises(NotVerified, match="not signed"):
        check_certificate(file, key=desk / "keys/public.pem")
    with pytest.raises(MissingData, match="There is no model"):
        check_certificate(file, model=tmp_path / "nowhere")
    with pytest.raises(InvalidArgument, match="keep the private one"):
        check_certificate(file, key=desk / "keys/private.pem")


def test_nothing_is_written_where_the_key_or_the_name_is_wrong(desk: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="pdf"):
        write_certificate(desk / "clinic", tmp_path / "c.txt")
    with pytest.raises(InvalidArgument, match="this is the public one"):
        write_certificate(desk / "clinic", tmp_path / "c.pdf", sign_with=desk / "keys/public.pem")
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_comes_twice_is_refused(desk: Path, tmp_path: Path) -> None:
    """People might read the one, programs the other."""
    text = (desk / "c.pdf.json").read_text()
    (tmp_path / "c.json").write_text(text.replace('"epsilon":', '"epsilon": 0.1, "epsilon":', 1))
    with pytest.raises(InvalidArgument):
        read_certificate(tmp_path / "c.json")


def test_files_that_are_not_certificates(tmp_path: Path) -> None:
    with pytest.raises(MissingData):
        read_certificate(tmp_path / "none.json")
    for content in ("", "[]", "{}", '{"certificate": "x"'):
        (tmp_path / "c.json").write_text(content)
        with pytest.raises(InvalidArgument, match="certificate"):
            read_certificate(tmp_path / "c.json")
    with pytest.raises(InvalidArgument, match="version"):
        verify_certificate({"certificate": "x", "version": 99})
