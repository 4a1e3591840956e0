"""Several processes train bit for bit the model of one, and end as soon as one of them does. Real processes, gloo."""

import ast
from pathlib import Path

import pytest
import torch
from rank_programs import conversation, interfaces, one_dies, together, train, verdicts
from safetensors.torch import load

import dpal


@pytest.mark.parametrize(("count", "in_units"), [(2, False), (3, True)])
def test_several_processes_have_the_weights_of_one_bit_for_bit(count: int, in_units: bool) -> None:
    """With dropout, augmented copies, two groups and records whose gradients are broken."""
    alone = train(in_units=in_units)
    assert alone[1] > 0
    assert together(count, train, "", in_units) == [alone] * count


def test_a_planted_bug_gives_another_model() -> None:
    alone = load(train()[0])
    for bug in ("a batch is lost", "a batch is added twice", "noise of each process"):
        weights, _ = together(2, train, bug)[0]
        differences = [float((value - alone[name]).abs().max()) for name, value in load(weights).items()]
        assert max(differences) > 1e-4, bug


@pytest.mark.parametrize(
    ("bug", "what"),
    [("other key", "their weights after the phase"), ("other noise multiplier", "how they compute")],
)
def test_processes_that_differ_are_refused(bug: str, what: str) -> None:
    for outcome in together(2, train, bug):
        assert outcome.startswith(f"DpalError: The 2 processes differ in {what}")


def test_messages_and_verdicts_reach_everyone() -> None:
    first, second, third = together(3, conversation)
    assert first == second == third
    assert together(2, verdicts) == [[False, False, True]] * 2


def test_sums_stay_on_the_loopback_interface_whatever_moves_them() -> None:
    for told in together(2, interfaces):
        assert told["GLOO_SOCKET_IFNAME"].startswith("lo") and told["NCCL_IB_DISABLE"] == "1"
        assert told["NCCL_SOCKET_IFNAME"] == f"={told['GLOO_SOCKET_IFNAME']}"


def test_a_killed_process_ends_the_others() -> None:
    first, second, third = together(3, one_dies)
    assert third == "died"
    assert first.startswith("ProcessLost: Another process")
    assert second.startswith("ProcessLost: Another process")


def torch_distributed_in(source: str) -> bool:
    tree = ast.walk(ast.parse(source))
    modules = [alias.name for node in tree if isinstance(node, ast.Import) for alias in node.names]
    tree = ast.walk(ast.parse(source))
    modules += [f"{node.module}." for node in tree if isinstance(node, ast.ImportFrom)]
    return any(module.startswith("torch.distributed") for module in modules)


def test_one_file_alone_imports_torch_distributed() -> None:
    package = Path(dpal.__file__).parent
    files = [path.name for path in package.rglob("*.py") if torch_distributed_in(path.read_text(encoding="utf-8"))]
    assert files == ["process_group.py"]
    assert torch_distributed_in("from torch.distributed.nn import all_reduce")


def test_one_process_takes_part_in_no_group() -> None:
    train()
    assert not torch.distributed.is_initialized()
