"""Utility and privacy yardsticks: a synthetic table against the real one.

For the steward: these functions see real rows, so what they return is confidential. What may be published
is paid for (`paid.py`). Rows are read as a release reads them, and compared by their codes, in the data's own
terms: cut at quantiles of the real column (`cuts.py`), in its spread and its units (`scales.py`).

- `compare.py` (files), `utility.py` (the audit): what is judged; `metrics.py`: by which metrics
- one file a metric: `marginals` and `search` (tables), `quantiles`, `regressions`, `groups`, `relations`,
`moments`, `wasserstein` and `joint`, `propensity`, `matches`, `classifiers`
- `verdict.py`: what holds and what does not, from findings about columns and about relations (`finding.py`)
- `lines.py`, `report.py`, `pictures.py`, `svg.py`: for people
"""
