"""What dpal run says to people, beyond what the campaign does."""

from pathlib import Path

import yaml
from command_line import dpal

CONFIG = """
data: {source: digits}
plan: {target_epsilon: 8, target_delta: 1.0e-4, initial_size: 40, query_sizes: [20], batch_size: 16, epochs: 1,
       planner: step-amplification, accountant: rdp, selection: random}
model: {name: small-cnn}
"""


def test_where_to_label_names_label_studio_if_it_is_used(tmp_path: Path) -> None:
    place = {"source": "label-studio", "url": "http://127.0.0.1:9", "token": "$NOT_SET"}
    for name, labels in (("without", {}), ("with", {"labels": place})):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(yaml.safe_load(CONFIG) | labels))
        assert dpal("init", name, "--config", f"{name}.yaml", cwd=tmp_path).returncode == 0
        done = dpal("run", name, cwd=tmp_path)
        assert done.returncode == 3 and f"dpal serve {name}" in done.stdout
        assert (f"dpal labels sync {name}" in done.stdout) == (name == "with")
