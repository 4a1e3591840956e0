"""Whatever goes wrong becomes a status and a sentence, without anything private."""

import asyncio

import pytest
from starlette.requests import Request
from starlette.responses import Response

from dpal.errors import CampaignBusy, DamagedCampaign, InvalidArgument, MissingData, NotForYou, RecordsChanged
from dpal.web.access import NotAllowed
from dpal.web.requests import handled, number_in

SECRET = "SMITH_1950.png"  # noqa: S105


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotAllowed(), 401),
        (NotAllowed(wait=True), 429),
        (NotForYou(), 404),
        (InvalidArgument("ε", 3, "less"), 400),
        (RecordsChanged(SECRET), 409),
        (CampaignBusy("busy"), 503),
        (MissingData(SECRET), 404),
        (DamagedCampaign(SECRET), 500),
        (OSError(28, "No space left on device", SECRET), 500),
        (ZeroDivisionError(SECRET), 500),
        (KeyError(SECRET), 500),
    ],
)
def test_errors_become_sentences(error: Exception, status: int, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(request: Request) -> Response:
        raise error

    request = Request({"type": "http", "method": "GET", "path": "/x", "query_string": b"name=secret", "headers": []})
    request.scope |= {"server": ("127.0.0.1", 1), "scheme": "http"}
    response = asyncio.run(handled(fails)(request))
    assert response.status_code == status
    body = bytes(response.body).decode()
    assert SECRET not in body and "Traceback" not in body and '"error"' in body
    # The operator's log has what is needed to mend it, and not what stands behind the path.
    log = capsys.readouterr().err
    assert (SECRET in log) == (SECRET in str(error)) and "name=secret" not in log


@pytest.mark.parametrize("text", ["", "-1", "1.0", " 1", "1234567", "²", "x"])
def test_numbers_in_addresses(text: str) -> None:
    assert number_in("012") == 12
    with pytest.raises(NotForYou):
        number_in(text)
