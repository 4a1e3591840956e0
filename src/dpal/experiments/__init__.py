"""The paper's tables and figures, and the demonstration, as named runs that resume.

Reading order:

- `tasks`, `scales`: datasets with their models and hyperparameters, at the paper's size or smaller
- `runs`: what one run, one row of a table and one experiment are
- `methods`, `table1`, `ablations`, `catalogue`: all experiments, by name
- `sweep`: runs them, each as a campaign; `tracking_learner`, `measurements`: what is measured afterwards
- `results`, `paper_numbers`, `tables`: files of results, the paper's own numbers, and tables of both
- `results_page`, `commentary`: docs/results.md, generated from the results
- `demo`: the two small campaigns of `dpal demo`
"""
