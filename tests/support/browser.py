"""Debian's Chromium, driven by Playwright."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian's package chromium)")
_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    # Whatever it would like to tell its makers goes nowhere.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
)


@contextmanager
def chromium() -> Generator[Any]:
    """A browser for the block."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_OPTIONS))
        try:
            yield browser
        finally:
            browser.close()
