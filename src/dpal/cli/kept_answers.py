"""The answers to `dpal init` in a file next to the campaign, so that no mistake and no Ctrl-C costs all of them."""

from pathlib import Path
from typing import Any

import yaml

from dpal.campaign.files import write_text
from dpal.cli.answered_config import answers_in, config_of
from dpal.cli.questions import Answers

_MARK = "# Answers to dpal init, which offers them again."


class KeptAnswers:
    """The file CAMPAIGN.yaml. One that someone else wrote is neither read nor replaced."""

    def __init__(self, campaign: Path) -> None:
        self.file = campaign.with_name(f"{campaign.name}.yaml")
        text = self.file.read_text(encoding="utf-8", errors="replace") if self.file.is_file() else _MARK
        self.is_ours = self.file.parent.is_dir() and not self.file.is_dir() and text.startswith(_MARK)
        self._earlier = _document(text) if self.is_ours else {}

    def offered(self) -> dict[str, str]:
        """Earlier answers by the questions' names, as a person would type them."""
        return answers_in(self._earlier)

    def keep(self, answers: Answers) -> None:
        """Write the answers so far, as far as they make a configuration, and earlier ones to what was not asked yet."""
        if not self.is_ours:
            return
        now = config_of(answers)
        earlier = self._earlier
        if now["data"]["source"] != earlier.get("data", {}).get("source"):
            earlier = {name: earlier[name] for name in ("plan", "oracle") if name in earlier}
        elif "held_out" in answers:
            earlier = {name: section for name, section in earlier.items() if name != "evaluation"}
        text = yaml.safe_dump(_merged(earlier, now), sort_keys=False, allow_unicode=True)
        write_text(self.file, f"{_MARK}\n{text}")

    def remove(self) -> None:
        """The campaign exists, and its own folder has the configuration."""
        if self.is_ours:
            self.file.unlink(missing_ok=True)


def _document(text: str) -> dict[str, Any]:
    """What a file has; nothing if someone damaged it."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError:
        return {}
    return document if isinstance(document, dict) and isinstance(document.get("data"), dict) else {}


def _merged(earlier: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Both, and where they differ what is said now."""
    sections = [name for name in earlier if isinstance(earlier[name], dict) and isinstance(now.get(name), dict)]
    return {**earlier, **now, **{name: _merged(earlier[name], now[name]) for name in sections}}
