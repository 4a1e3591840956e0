"""What all commands share: help that starts fast, mistakes and missing packages as one sentence, files kept."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import dpal
from small_campaigns import linear_model, linear_plan, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.cli import run
from dpal.cli.app import require_free
from dpal.errors import DpalError, InvalidArgument

HEAVY = ("torch", "matplotlib", "sklearn", "PIL", "pyarrow", "datasets", "transformers", "jinja2", "cryptography")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished campaign and a folder of images."""
    folder = tmp_path_factory.mktemp("desk")
    Campaign.create(
        folder / "c", plan=linear_plan(), pool=linear_pool(), model=linear_model(), oracle="simulated"
    ).run()
    (folder / "images").mkdir()
    for number in range(40):
        (folder / f"images/{number}.png").write_bytes(b"\x89PNG")
    options = {"folder": "images", "classes": ["a", "b"], "size": 8, "channels": 1}
    config = {
        "data": {"source": "image-folder", "options": options},
        "plan": {"target_epsilon": 8, "accountant": "rdp", "phases": 2},
        "model": {"name": "resnet9"},
    }
    (folder / "images.yaml").write_text(json.dumps(config))
    return folder


def test_the_version() -> None:
    done = dpal("--version")
    assert done.returncode == 0
    assert done.stdout.strip()


@pytest.mark.parametrize(
    "words", [("--help",), ("status", "c"), ("labels", "close", "--help"), ("experiments", "list")]
)
def test_commands_that_need_nothing_heavy_load_nothing_heavy(desk: Path, words: tuple[str, ...]) -> None:
    code = (
        "import atexit, sys\n"
        f"atexit.register(lambda: print('loaded:', [name for name in {HEAVY} if name in sys.modules]))\n"
        "from dpal.cli import run; run()"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=desk, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded: []"


@pytest.mark.parametrize(
    ("package", "extra", "words"),
    [
        ("torch", "train", ("init", "new", "--data", "digits", "--epsilon", "8")),
        ("torch", "train", ("run", "c")),
        ("torch", "train", ("demo", "--folder", "demo")),
        ("torch", "train", ("export-model", "c", "--to", "m.safetensors")),
        ("mlflow", "mlflow", ("export", "mlflow", "c", "--to", "tracking")),
        ("sqlalchemy", "mlflow", ("export", "mlflow", "c", "--to", "tracking")),
        ("safetensors", "train", ("run", "c")),
        ("matplotlib", "plots", ("demo", "--folder", "demo")),
        ("matplotlib", "plots", ("certificate", "c", "--to", "c.pdf")),
        ("matplotlib", "plots", ("report", "c", "--to", "c.html")),
        ("matplotlib", "plots", ("compare", "c", "--to", "b.html")),
        ("matplotlib", "plots", ("histogram", "c", "--to", "h.png")),
        ("matplotlib", "plots", ("plan", "--epsilon", "8", "--accountant", "rdp", "--plot", "p.png")),
        ("sklearn", "data", ("init", "new", "--data", "digits", "--epsilon", "8")),
        ("PIL", "data", ("init", "new", "--config", "images.yaml")),
    ],
)
def test_a_missing_package_is_a_sentence_that_names_the_extra(
    desk: Path, package: str, extra: str, words: tuple[str, ...]
) -> None:
    before = sorted(desk.iterdir())
    done = dpal(*words, cwd=desk, without=package)
    assert done.returncode == 2, done.stderr
    assert f"pip install 'dpal[{extra}]'" in done.stderr
    assert package in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(desk.iterdir()) == before


def test_a_package_that_is_not_dpals_to_install_stays_an_error(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import nowhere_to_be_found\n")
    code = (
        "import sys; sys.path.insert(0, '.')\n"
        "from dpal.cli import app, run\n"
        "app.command('mine')(lambda: __import__('mine'))\n"
        "run()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "mine"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "nowhere_to_be_found" in done.stderr


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["training.device=gpu"], "--set training.device=gpu: must be auto, cpu, cuda"),
        (["plan.epoch=3"], "--set plan.epoch=3: there is no such setting (did you mean plan.epochs?)"),
        (
            ["plan.target_epsilon=0.01", "plan.selections=released", "model.name=small-cnn"],
            "or the selection 'random', which spends no ε",
        ),
        (["plan.selections=outside"], "selections is 'outside', but must be one of inside, released"),
    ],
)
def test_mistaken_settings_are_named(tmp_path: Path, settings: list[str], message: str) -> None:
    changed = [word for setting in settings for word in ("--set", setting)]
    done = dpal("init", "c", "--data", "digits", "--epsilon", "8", *changed, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_files_are_replaced_only_with_force(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    require_free(file, None)
    file.write_text("mine")
    require_free(file, force=True)
    with pytest.raises(DpalError, match="--force"):
        require_free(None, file)
    for wrong in (tmp_path, tmp_path / "nowhere" / "a.json"):
        with pytest.raises(InvalidArgument, match="a folder that exists"):
            require_free(wrong, force=True)
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(DpalError, match="exists already"):
        require_free(tmp_path / "link")


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (MemoryError(), 1, "not enough memory"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
            1,
            "not enough memory",
        ),
        (KeyboardInterrupt(), 130, "Stopped. Nothing is lost."),
    ],
)
def test_too_little_memory_and_an_early_ctrl_c_are_a_sentence(
    error: BaseException, code: int, words: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C may come while the program itself begins, before any command could say something."""

    def app() -> None:
        raise error

    monkeypatch.setattr("dpal.cli.app", app)
    with pytest.raises(SystemExit) as stopped:
        run()
    assert stopped.value.code == code
    assert words in capfd.readouterr().err


def test_other_errors_of_ours_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def app() -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr("dpal.cli.app", app)
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        run()
