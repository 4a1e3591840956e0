"""The page of results, docs/results.md: generated, so that it holds only what was really run."""

from dpal.errors import InvalidArgument
from dpal.experiments.catalogue import EXPERIMENTS
from dpal.experiments.commentary import DIFFERENCES, INTRODUCTION
from dpal.experiments.results import Results, finished
from dpal.experiments.runs import Experiment
from dpal.experiments.scales import FULL, SCALES
from dpal.experiments.tables import table_of
from dpal.experiments.tasks import TASKS


def page_of(results: Results, *, scale: str = FULL) -> str:
    """All experiments; those without any result get one line each."""
    if scale not in SCALES:
        raise InvalidArgument("scale", scale, f"one of {', '.join(SCALES)}")
    parts = [f"# Results\n\n{INTRODUCTION}\n"]
    if scale != FULL:
        parts.append(f"**{SCALES[scale].words}.**\n")
    missing: list[Experiment] = []
    for experiment in EXPERIMENTS.values():
        if _anything(experiment, results, scale):
            parts.append(section_of(experiment, results, scale=scale))
        else:
            missing.append(experiment)
    if missing:
        lines = "\n".join(
            f"- {experiment.title}: `dpal experiments run {experiment.name} --scale full`" for experiment in missing
        )
        parts.append(f"## Not run yet\n\n{lines}\n")
    return "\n".join(parts)


def section_of(experiment: Experiment, results: Results, *, scale: str = FULL) -> str:
    """One experiment: its table, and what a reader should know about it."""
    words = [f"## {experiment.title}\n"]
    if scale != FULL:
        words.append(f"{SCALES[scale].words}.\n")
    words.append(f"{table_of(experiment, results, scale=scale).markdown()}\n")
    remarks = (_where(experiment, results, scale), experiment.remark, *_remarks(experiment, scale))
    words += [f"{text}\n" for text in remarks if text]
    if scale == FULL and experiment.name in DIFFERENCES:
        words.append(f"{DIFFERENCES[experiment.name]}\n")
    words.append(f"`dpal experiments run {experiment.name} --scale {scale}`\n")
    return "\n".join(words)


def _where(experiment: Experiment, results: Results, scale: str) -> str:
    places = {
        (document["device"], document.get("precision", "float64"), document["versions"].get("torch", ""))
        for row in experiment.rows
        for document in finished(results, row, scale=scale, seeds=experiment.seeds)
    }
    return "; ".join(f"On {device}, {precision}, torch {torch}." for device, precision, torch in sorted(places))


def _anything(experiment: Experiment, results: Results, scale: str) -> bool:
    return any(finished(results, row, scale=scale, seeds=experiment.seeds) for row in experiment.rows)


def _remarks(experiment: Experiment, scale: str) -> list[str]:
    """Remarks on the tasks, as they are at this scale, once each."""
    tasks = (SCALES[scale].changed(TASKS[name]) for name in dict.fromkeys(row.task for row in experiment.rows))
    return [f"{task.title}: {task.remark}" for task in tasks if task.remark]
