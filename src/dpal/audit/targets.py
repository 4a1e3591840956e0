"""What to attack: a plan from its file, or the plan and the settings of a campaign, whose records are not read."""

from pathlib import Path

from dpal.audit.attack import Target
from dpal.audit.claims import require_private
from dpal.campaign.reader import Reader
from dpal.data.units import DEFAULT_ROWS
from dpal.errors import MissingData
from dpal.planning.certification import load_plan
from dpal.planning.plan import Plan
from dpal.planning.setting import RECORD


def target_of_plan(file: Path) -> Target:
    """A plan that dpal plan wrote, certified again. Units have as many records as is usual."""
    if not file.is_file():
        raise MissingData(f"There is no file {file}. Write one with dpal plan --json FILE.")
    plan = _private(load_plan(file))
    return Target(plan=plan, rows_per_unit=1 if plan.setting.unit == RECORD else DEFAULT_ROWS)


def target_of_campaign(folder: Path) -> Target:
    """A campaign's plan, carried out with its settings on its kind of device."""
    reader = Reader(folder)
    config = reader.config()
    training, plan = config.training, _private(reader.plan)
    rule = None if config.data is None else config.data.unit
    rows = DEFAULT_ROWS if rule is None else rule.records
    return Target(
        plan=plan,
        max_grad_norm=training.max_grad_norm,
        engine=training.engine,
        precision=training.precision,
        device=training.device,
        rows_per_unit=1 if plan.setting.unit == RECORD else rows,
    )


def _private(plan: Plan) -> Plan:
    require_private(plan)
    return plan
