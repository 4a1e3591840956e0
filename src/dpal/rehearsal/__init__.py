"""Rehearsals: a campaign's plan, model and number of labels on public records, before a private one is read.

Reading order:

- `forecasts`: what is rehearsed and what comes out
- `stand_ins`: the public records that take the place of the pool
- `mixed_rows`, `synthetic_features`: how few rows, or none, fill a pool
"""

from dpal.rehearsal.forecasts import Forecast, Rehearsal, rehearse

__all__ = ["Forecast", "Rehearsal", "rehearse"]
