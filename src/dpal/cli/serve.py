"""The command that serves the labelling page and the dashboard."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dpal.cli.app import app
from dpal.imports import optional


@app.command()
def serve(
    campaigns: Annotated[list[Path], typer.Argument(help="Folders of campaigns.", metavar="CAMPAIGN...")],
    host: Annotated[
        str, typer.Option(help="Where to listen. Other machines reach 127.0.0.1 only by a proxy.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes any free one.", min=0, max=65535)] = 8000,
    public_url: Annotated[
        str | None,
        typer.Option(
            help="The address that people type, where it differs: behind a reverse proxy with TLS.", metavar="URL"
        ),
    ] = None,
) -> None:
    """Serve the page on which experts label, and the dashboard, until Ctrl-C. Prints a link for each person.

    It works next to a running dpal run: answers are safe once the page says so, and the campaign takes them in before
    its next step. Links are like passwords: give each to one person.

    Example: dpal experts add clinic "Dr. Okafor"; dpal serve clinic
    """
    optional("uvicorn", extra="web")
    from dpal.web.access import Access
    from dpal.web.server import Address, links
    from dpal.web.server import serve as serve_campaigns

    console = Console(soft_wrap=True)

    def ready(access: Access, address: Address) -> None:
        console.print(f"Serving at {address.base}. Stop with Ctrl-C. Each link is for one person:", highlight=False)
        for whom, link in links(access, address.base):
            console.print(f"  {whom}: {link}", markup=False, highlight=False)
        for desk in access.desks.values():
            if not desk.arrangement.people:
                console.print(
                    f"Nobody labels {desk.folder.name} yet: dpal experts add {desk.folder} NAME", markup=False
                )

    serve_campaigns(campaigns, host=host, port=port, public_url=public_url, ready=ready)
