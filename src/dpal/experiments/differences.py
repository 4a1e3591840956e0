"""What is to be said beside the numbers: how they were made, and why they differ from the paper's."""

INTRODUCTION = """\
Generated from `experiments/results` with `dpal experiments table all --markdown docs/results.md`; only what was really
run is in it, and a cell without a result says which run is missing. Every run is a campaign with a simulated oracle and
a seed, so nothing in these runs is private. A run repeats exactly on a CPU; on a GPU the compiled code may round
differently from one machine to the next (phase 1 of the same seed: 46.84% and 46.53%). The rows from an H200 were run
from Python instead of the command line, with one clipping engine kept over all phases (so that it was checked and
compiled once) and images in channels-last order.

    dpal experiments list
    dpal experiments run headline --scale laptop       # minutes a run; says everywhere that it is small
    dpal experiments run headline --scale full --precision bf16 --physical-batch 2176
    dpal experiments table headline

Datasets lie in `$DPAL_DATA` (see data.md). A run that is finished is not repeated, one that was interrupted goes on,
and several processes may share an experiment. The rows named after the paper do things the paper's way: Rényi
accounting, basic composition, Laplace selection, no average.

Where a table shows accuracy, it is percent on the test set after the last phase, mean ± deviation over seeds, with the
number of seeds in brackets. *weights* are the plain weights, as in the paper; *average* is their moving average, which
every run keeps beside them."""

DIFFERENCES: dict[str, str] = {
    "headline": """\
**What it shows.** One seed a row, and the paper's own deviations are 0.6 to 1.2: differences below two points between
single rows mean nothing yet.

- Ours, everything on, is above all of the paper's numbers for this model and ε, its upper bound without private
  selection (68.43) included: threshold sampling with branch accounting, PLD, the optimised plan, four augmented copies
  of a record, an average of the weights with decay 0.995, which also selects, and a learning rate of 2e-3. The last two
  were chosen from earlier single runs on the same test set.
- Random and Random AL are within a deviation of the paper's.
- Random naive AL is about two points better than the paper's (three of its deviations). The plan does not explain it:
  the paper takes whole batches an epoch (660 steps, noise 4.11 at this δ), we take q = b/|D| (746 steps, noise 3.81),
  and the squared signal over noise, summed over the steps, differs by 2% only. It needs more seeds.
- Entropy with Laplace is 1.4 points below the paper's. Its selections took about as much of the true top as this noise
  allows (see the selection accuracy below), so it may be the spread of training: it needs more seeds too.
- The average of the weights, which costs nothing, adds 0.8 to 1.6 points everywhere but in the naive plan.
- Our groups end at or under ε = 8. The paper's plan for this setting ends between 8.008 and 8.138 (planning.md).""",
    "selection-accuracy": """\
The accuracy is the part of the true top that was taken, of one seed. On our pools' entropies, Laplace noise for ε = 0.5
a selection takes 28.3, 12.1, 4.9 and 5.0% on average over many draws, with deviations of 0.3 to 0.8; the paper's
numbers and ours are near these. The scale that the paper's algorithm prints, T·c/(i·ε_sel), would take about 14.5, 7
and 9% in selections 2 to 4, so its results were probably made with the right one. Threshold sampling, under the same
promise, takes 1.7 to 2.7 times as much of the true top in the later selections, and raises the mean score above the
pool's by three to eleven times as much.""",
    "planning-time": """\
Mean of ten plans in one process, so tables that a first plan fills are there already; a first plan takes about 0.06 s
(`benchmarks/planning.py`). The paper's times are of its own machine.""",
    "own-columns": """\
The column *average* is the effect of the average alone where plain weights select.""",
}
