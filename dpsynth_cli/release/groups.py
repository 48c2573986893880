"""A release by groups: spec -> ledger -> groups of rows -> files. Not differentially private, and it says so.

There is no transcript: nothing in it is noisy, so nothing could be made again without the data. The ledger
records the release before the first row is read, as one that no budget bounds.
"""

from __future__ import annotations

import secrets
from contextlib import closing
from functools import partial

from dpsynth_cli.errors import UsageError
from dpsynth_cli.evaluate.tables import Sample, scanned
from dpsynth_cli.evaluate.utility import SAMPLE_ROWS, utility
from dpsynth_cli.mechanisms.microaggregation.constraints import keeping, kept
from dpsynth_cli.questions import Progress, no_progress
from dpsynth_cli.release.budget import cost_of
from dpsynth_cli.release.documents import audit
from dpsynth_cli.release.documents.junk import for_the_steward, refuse_junk
from dpsynth_cli.release.files.publish import Files, publish
from dpsynth_cli.release.files.replaced import check_free
from dpsynth_cli.release.files.write import write_table
from dpsynth_cli.release.record.journal import refunding
from dpsynth_cli.release.record.unfinished import Request
from dpsynth_cli.release.synthesis import Receipt, about
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.groups import read_groups
from dpsynth_cli.trusted.ledger.ledger import Ledger
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.read import open_scan


def release(
    spec: Spec, ledger: Ledger, progress: Progress = no_progress, request: Request | None = None
) -> Receipt:
    """Groups, their centres or rows drawn from them, and the audits; recorded in the ledger as unbounded."""
    request = request or Request()
    if request.resume:
        raise UsageError(
            "a release by groups is made at once: there is nothing to resume.",
            next_step="Run it again without --resume; the ledger records it again.",
        )
    if spec.rows is not None and spec.params.output == "centroids":
        raise UsageError(
            f"{spec.places.get('rows', 'rows')}: output: centroids gives as many rows as the input has.",
            next_step="Leave out rows, or take mechanism.output: bootstrap.",
        )
    files = Files.of(spec)
    files.check_writable()
    check_free(files, request.replace)
    with closing(open_scan(spec.input, spec.domain.columns, spec.csv)) as scan:
        refuse_junk(spec, scan)
        release_id = secrets.token_hex(16)
        with refunding(spec, ledger, release_id, reserving=True):
            entry = ledger.reserve(spec.privacy.dataset, release_id, spec.name, cost_of(spec))
            ledger.drawn(release_id)
            progress("reading", 0, scan.size)
            counted = Problems.of(column.name for column in spec.domain)
            found = read_groups(
                scan,
                spec.domain,
                spec.params.group_size,
                spec.params.partition,
                spec.params.parameters == "paper",
                lambda done: progress("reading", done, scan.size),
                counted,
            )
            problems = for_the_steward(counted, spec.domain)
            count, blocks = found.released(spec.params.output, spec.rows)
            blocks = keeping(blocks, kept(spec.params.convex or (), spec.domain))
            made = Sample(SAMPLE_ROWS)
            pending = write_table(
                files.path,
                spec.domain.columns,
                made.watching(blocks),
                count,
                release_id,
                spec.csv,
                fillers=spec.fillers,
            )
            try:
                output = {
                    "file": files.output_name,
                    "rows": count,
                    "columns": [column.name for column in spec.domain],
                    "sha256": pending.sha256,
                }
                recorded = {"dataset": spec.privacy.dataset, "hash": entry.hash}
                public = audit.groups_audit(spec, about(spec, release_id), recorded, output)
                named = files.named(transcript=False)
                real = partial(scanned, scan, spec.domain, SAMPLE_ROWS, progress)
                useful = utility(spec, real, made, progress, lambda: problems)
                charged = ledger.receipt(spec.privacy.dataset, release_id)
                steward = audit.steward_audit(public, spec.input, named, charged, useful, problems)
                steward["groups"] = found.for_the_steward()
                publish(
                    files,
                    release_id,
                    ledger.charged_at(release_id),
                    pending,
                    None,
                    audit.as_text(steward),
                    audit.as_text(public),
                    partial(ledger.commit, release_id),
                )
            finally:
                pending.discard()
    return Receipt(release_id, count, named, public, charged, problems)
