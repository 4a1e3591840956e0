"""Counts calls of an expensive function: growth without a clock."""

from typing import Any

import pytest


def counted(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> list[tuple[Any, ...]]:
    """The arguments of every call from now on."""
    calls: list[tuple[Any, ...]] = []
    real = getattr(owner, name)

    def noted(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        return real(*arguments, **options)

    monkeypatch.setattr(owner, name, noted)
    return calls
