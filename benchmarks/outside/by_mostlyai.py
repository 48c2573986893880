"""mostlyai-qa: accuracy of 1-, 2- and 3-way tables, a discriminator, and distances to the closest record.

"1-way" to "3-way" are 1 less the total variation distance in 10 cells a column: 1 is best, and "most" is
what the judge thinks can be had of a sample. "AUC" is of telling made rows from released ones by their
embeddings: 0.5 is chance. "nearer to released": part of the made rows that are; 0.5 is best. "identical":
made rows that are one of the released rows.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from mostlyai import qa
from three_tables import given, say


def figures() -> dict[str, float]:
    tables = given()
    with tempfile.TemporaryDirectory() as folder:
        _, found = qa.report(
            syn_tgt_data=tables.made,
            trn_tgt_data=tables.released,
            hol_tgt_data=tables.held_out,
            report_path=Path(folder) / "report.html",
            max_sample_size_embeddings=min(10_000, tables.most),
        )
    return {
        "1-way": found.accuracy.univariate,
        "2-way": found.accuracy.bivariate,
        "2-way, most": found.accuracy.bivariate_max,
        "3-way": found.accuracy.trivariate,
        "3-way, most": found.accuracy.trivariate_max,
        "AUC": found.similarity.discriminator_auc_training_synthetic,
        "nearer to released": found.distances.dcr_share,
        "identical": found.distances.ims_training,
    }


if __name__ == "__main__":
    say(figures())
