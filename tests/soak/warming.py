"""Everything that a command imports or computes once, done before any child is forked: a command then takes 0.1 s."""

import contextlib
import gc
import importlib
import pkgutil
from pathlib import Path

import torch
import typer.main
from campaign_kinds import KINDS, template, write_data

import dpal.cli

# Not needed here, and slow or impossible to import.
_WITHOUT = ("__main__", "large", "ray", "mlflow", "experiments", "audit", "rehearsal", "encoders", "hugging")


def warm(base: Path) -> None:
    """Import everything, and make one campaign of each kind in this process, so that plans are in its caches."""
    for module in pkgutil.walk_packages(dpal.__path__, "dpal."):
        if not any(part in module.name for part in _WITHOUT):
            importlib.import_module(module.name)
    for name in ("uvicorn.protocols.http.h11_impl", "uvicorn.loops.asyncio", "uvicorn.lifespan.off"):
        with contextlib.suppress(ImportError):
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
