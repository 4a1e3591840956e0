"""Everything that a command imports or computes once, done before any child is forked: a command then takes 0.1 s."""

import gc
import importlib
from pathlib import Path

import torch
import typer.main
from campaign_kinds import KINDS, template, write_data

import dpal.cli

# What commands import when they need it; the rest comes with the first campaigns. The less there is, the faster a fork.
_NEEDED = ("dpal.campaign.given_up_phase", "dpal.campaign.withdrawal", "dpal.campaign.answer_history")
_NEEDED += ("dpal.campaign.labelling", "dpal.campaign.arranging", "dpal.web.access", "dpal.web.server")
_NEEDED += ("uvicorn.protocols.http.h11_impl", "uvicorn.loops.asyncio", "uvicorn.lifespan.off")


def warm(base: Path) -> None:
    """Import everything, and make one campaign of each kind in this process, so that plans are in its caches."""
    for name in _NEEDED:
        importlib.import_module(name)
    # There are no such devices, and asking for them takes longer than a training step.
    for device in (torch.cuda, torch.xpu, torch.mtia):
        device.manual_seed_all = lambda seed: None
    # Put together once, and not by every child: half of what a short command costs.
    commands = typer.main.get_command(dpal.cli.app)
    typer.main.get_command = lambda program: commands
    write_data(base)
    for kind in KINDS:
        template(kind, base)
    # Children need not copy the pages of what is here already to look for cycles in it.
    gc.collect()
    gc.freeze()
