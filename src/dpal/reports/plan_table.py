"""A plan as tables for a terminal."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from dpal.planning.objective import objective
from dpal.planning.plan import Plan
from dpal.planning.promises import WORDS, expected_labels
from dpal.planning.setting import RECORD
from dpal.planning.unit_words import adjacency, plural, unit_sentence
from dpal.privacy.rounding import rounded_up
from dpal.reports.plain_words import exactly, little_because, parameter, worst_case
from dpal.selection.cut import CutSelection

NOT_PRIVATE = "The selection is NOT private: the promise covers training only. Use this for upper bounds in simulation."


# Parameters of selections, short enough for a table.
_SHORT = {
    "epsilon": "ε",
    "choice_epsilon": "ε",
    "threshold_epsilon": "threshold's ε",
    "fraction_above": "above",
    "probability_high": "high",
    "probability_low": "low",
    "noise_multiplier": "noise",
}


_CUT_NOTE = (
    "How many records reach a cut is random: about the expected number, which is below the query size by the "
    "shortfall. P(more) is the probability of more than the query size, where scores are spread around the cut. If "
    "there are more, all of them are asked for; if there are fewer, nobody else is."
)


def plan_view(plan: Plan) -> RenderableType:
    """The promise, the phases, the selections and what each group pays."""
    parts: list[RenderableType] = [_promise(plan), *_meaning(plan), *_mean(plan), _phases(plan)]
    if plan.selections:
        cuts = [selection for selection in plan.selections if isinstance(selection, CutSelection)]
        parts += [_cuts(plan, cuts)] if len(cuts) == len(plan.selections) else [_selections(plan)]
    parts.append(_spending(plan))
    if plan.remark:
        parts.append(Text(plan.remark))
    if not plan.selection_is_private:
        parts.append(Panel(Text(NOT_PRIVATE, style="bold red"), border_style="red"))
    return Group(*parts)


def _promise(plan: Plan) -> Text:
    setting = plan.setting
    return Text.from_markup(
        f"[bold]{escape(plan.planner)}[/bold]: every {escape(setting.unit)} ends within "
        f"ε = [bold]{rounded_up(plan.epsilon, 4):.4f}[/bold] of {exactly(setting.target_epsilon)} "
        f"at δ = {exactly(setting.target_delta)} ({setting.accountant}, "
        f"{setting.accounting} accounting, {escape(adjacency(setting.unit))})\n"
        f"{_pool(plan)}, "
        f"steps {sum(phase.steps for phase in plan.phases):,}"
    )


def _pool(plan: Plan) -> str:
    setting = plan.setting
    if setting.unit == RECORD:
        return f"pool {setting.pool_size:,}, labels {_labels(plan)}"
    many = escape(plural(setting.unit))
    return f"pool {setting.pool_size:,} {many}, {many} to label {_labels(plan)}"


def _labels(plan: Plan) -> str:
    """How many labels to expect, and what was budgeted where that is more."""
    budget, expected = plan.setting.labelling_budget, sum(expected_labels(plan))
    return f"{budget:,}" if expected == budget else f"about {expected:,} expected of {budget:,} budgeted"


def _meaning(plan: Plan) -> list[RenderableType]:
    """What the promise means in the worst case; nothing if the selection is not private anyway."""
    if not plan.selection_is_private:
        return []
    setting = plan.setting
    promise = (setting.target_epsilon, setting.target_delta, setting.pool_size, setting.unit)
    little = little_because(*promise)
    warning = [] if little is None else [Panel(Text(little, style="bold red"), border_style="red")]
    words, of_unit = WORDS[setting.promise], unit_sentence(setting.unit)
    unit = [] if of_unit is None else [Text(of_unit, style="bold")]
    return [
        *warning,
        *unit,
        Text(worst_case(*promise)),
        Text(f"{words.short}\n", style="bold"),
        Text(f"{words.meaning}\n"),
    ]


def _mean(plan: Plan) -> list[RenderableType]:
    setting = plan.setting
    if setting.mean is None:
        return []
    alone = rounded_up(setting.certifier.epsilon(setting.before, setting.target_delta), 4)
    return [
        Text(
            f"First, a private mean of the features of all {setting.pool_size:,} {plural(setting.unit)} is released: "
            f"noise multiplier {setting.mean.noise_multiplier:g}, ε = {alone:.4f} by itself, part of every ε below.\n"
        )
    ]


def _phases(plan: Plan) -> Table:
    table = Table(
        title="Training phases (noise multiplier, expected batch size, sampling rate of each group)",
        title_justify="left",
    )
    for heading in ("phase", "steps", "noise", "batch"):
        table.add_column(heading, justify="right")
    groups = len(plan.groups)
    for group in _shown(groups):
        table.add_column("…" if group is None else f"rate {group + 1}", justify="right")
    for number, phase in enumerate(plan.phases, start=1):
        rates = phase.sampling_probabilities
        cells = ["" if group is None or group >= len(rates) else f"{rates[group]:.4g}" for group in _shown(groups)]
        table.add_row(
            str(number),
            f"{phase.steps:,}",
            f"{phase.noise_multiplier:.4f}",
            f"{phase.expected_batch_size:,.0f}",
            *cells,
        )
    return table


def _after(plan: Plan, index: int) -> str:
    """The phase after which a selection is made."""
    return str(max(n for n, phase in enumerate(plan.phases, 1) if len(phase.sampling_probabilities) == index + 1))


def _cuts(plan: Plan, cuts: Sequence[CutSelection]) -> RenderableType:
    table = Table(title="Selections: every record at or above a private cut is asked for", title_justify="left")
    headings = ("after phase", "cut's ε", "expected", "query size", "of", "P(more)", "expected shortfall")
    for heading in headings:
        table.add_column(heading, justify="right")
    for index, cut in enumerate(cuts):
        table.add_row(
            _after(plan, index),
            parameter("cut_epsilon", cut.cut_epsilon),
            f"{cut.wanted:,}",
            f"{cut.query_size:,}",
            f"{cut.unlabelled:,}",
            f"{rounded_up(100 * cut.overrun_probability, 2):.2f}%",
            f"{1 - cut.wanted / cut.query_size:.1%}",
        )
    return Group(table, Text(_CUT_NOTE))


def _selections(plan: Plan) -> Table:
    table = Table(title="Selections", title_justify="left")
    for heading in ("after phase", "mechanism", "takes", "of"):
        table.add_column(heading, justify="right")
    table.add_column("parameters")
    for index, selection in enumerate(plan.selections):
        parameters = ", ".join(
            f"{_SHORT.get(name, name)} {parameter(name, value)}" for name, value in selection.parameters().items()
        )
        table.add_row(
            _after(plan, index),
            selection.kind(),
            f"{selection.query_size:,}",
            f"{selection.unlabelled:,}",
            parameters or "–",
        )
    return table


def _spending(plan: Plan) -> Table:
    table = Table(title="ε after each phase", title_justify="left")
    table.add_column("group", justify="right")
    table.add_column(plural(plan.setting.unit), justify="right")
    shown = _shown(len(plan.phases))
    for phase in shown:
        table.add_column("…" if phase is None else f"phase {phase + 1}", justify="right")
    for number, group in enumerate(plan.groups, start=1):
        table.add_row(str(number), f"{group.size:,}", *_cells(group.epsilon_by_phase, shown))
    left = plan.setting.pool_size - plan.setting.labelling_budget
    table.add_row("never selected", f"{left:,}", *_cells(plan.never_selected_epsilon_by_phase, shown))
    return table


def _cells(values: tuple[float, ...], shown: list[int | None]) -> list[str]:
    return ["" if phase is None else f"{rounded_up(values[phase], 4):.4f}" for phase in shown]


def _shown(count: int) -> list[int | None]:
    """The columns that fit a terminal: all if there are few, otherwise both ends with a gap (None) between them."""
    return list(range(count)) if count <= 9 else [*range(4), None, *range(count - 4, count)]


def comparison(plans: dict[str, Plan | str]) -> RenderableType:
    """Planners side by side; a text instead of a plan says why there is none."""
    table = Table(title="Planners side by side", title_justify="left")
    table.add_column("planner", no_wrap=True)
    for heading in ("ε", "lowest ε", "phases", "steps", "noise", "objective"):
        table.add_column(heading, justify="right")
    remarks: list[RenderableType] = []

    for name, plan in plans.items():
        if isinstance(plan, str):
            table.add_row(name, *("–",) * 6)
            remarks.append(Text(f"{name}: {plan}", style="yellow"))
            continue
        noises = [phase.noise_multiplier for phase in plan.phases]
        spread = f"{min(noises):.2f}" if max(noises) - min(noises) < 0.005 else f"{min(noises):.2f} – {max(noises):.2f}"
        table.add_row(
            name,
            f"{rounded_up(plan.epsilon, 4):.4f}",
            f"{rounded_up(min(group.epsilon_by_phase[-1] for group in plan.groups), 4):.4f}",
            str(len(plan.phases)),
            f"{sum(phase.steps for phase in plan.phases):,}",
            spread,
            f"{objective(plan.schedule, tuple(group.size for group in plan.groups)):.3g}",
        )
        if plan.remark:
            remarks.append(Text(f"{name}: {plan.remark}"))
    return Group(table, *remarks)
