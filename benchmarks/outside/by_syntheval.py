"""SynthEval: Hellinger distances, mixed correlations, and its privacy metrics with held-out rows.

"Hellinger" is the mean over columns and "correlations" the norm of the difference of two matrices: 0 is
best. "nearest neighbour loss": how much nearer made rows are to released ones than to held-out ones, 0 is
best. "hits": made rows that are very near to a released one. "membership": F1 of an attack that says who
was released; 0.5 is chance.
"""

from __future__ import annotations

from syntheval import SynthEval
from three_tables import filled, given, say

MOST = 4000  # distances between all rows are in memory
ASKED = {
    "h_dist": {},
    "corr_diff": {"mixed_corr": True},
    "nnaa": {"n_resample": 5},
    "hit_rate": {"thres_percent": 0.0333},
    "mia": {"num_eval_iter": 5},
}


def figures() -> dict[str, float]:
    tables = given()
    released, held_out, made = (
        filled(t.iloc[:MOST], tables.numeric) for t in (tables.released, tables.held_out, tables.made)
    )
    judge = SynthEval(
        released,
        holdout_dataframe=held_out,
        cat_cols=tables.categorical,
        verbose=False,
        enable_plots=False,
        console="off",
    )
    judge.evaluate(made, tables.categorical[0] if tables.categorical else None, **ASKED)
    found = judge._raw_results  # the table that `evaluate` returns has rounded numbers
    return {
        "Hellinger": found["h_dist"]["avg"],
        "correlations": found["corr_diff"]["corr_mat_diff"],
        "nearest neighbour loss": found["nnaa"]["priv_loss"],
        "hits": found["hit_rate"]["hit rate"],
        "membership": found["mia"]["MIA macro F1"],
    }


if __name__ == "__main__":
    say(figures())
