"""dpsynth report: a release on one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsynth_cli.cli.options import Quiet, progress_bar

SAMPLE_ROWS = 200_000


def command(
    audit: Annotated[
        str, typer.Argument(metavar="AUDIT", help="The .audit.json or .audit.public.json of a release.")
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="The page; default: beside the audit, NAME.report.html."),
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Leave out all that is confidential: a page to publish.")
    ] = False,
    synthetic: Annotated[
        str | None, typer.Option("--synthetic", help="The synthetic file, if it is not beside the audit.")
    ] = None,
    real: Annotated[
        str | None, typer.Option("--real", "-i", help="The real table, if it is not where the audit says.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Make one self-contained HTML page of a release: verdict, guarantee, budget, columns, receipts.

    From the steward's audit the page is confidential, and shows real distributions beside synthetic ones
    (of at most 200,000 rows) and cells that were not as declared; with --public, or from the public audit,
    it may be published: it leads with the errors that were paid for, or says that there are none.
    """
    from dpsynth_cli.domain import as_written
    from dpsynth_cli.errors import FileError, UsageError
    from dpsynth_cli.evaluate.files import read_table, real_rows
    from dpsynth_cli.evaluate.report.page import Shown, page
    from dpsynth_cli.release.documents.audit import public_part
    from dpsynth_cli.release.documents.signing import named_keys
    from dpsynth_cli.release.files.publish import write_file
    from dpsynth_cli.release.found import released_spec
    from dpsynth_cli.release.verify import load_audit

    path = Path(audit)
    document = load_audit(path)
    if public:
        document = public_part(document)
    steward = not document["publishable"]
    if real and not steward:
        raise UsageError("a public page shows nothing of the real table.", next_step="Drop --real.")
    spec = released_spec(document)
    if document["output"]["file"] == "-" and synthetic is None:
        raise UsageError(
            "the release went to standard output.", next_step="Say where it was kept: --synthetic FILE."
        )
    made_at = synthetic or str(path.parent / document["output"]["file"])
    real_at = real or document.get("input", "")
    with progress_bar(quiet) as progress:
        made = read_table(made_at, *as_written(spec.released, spec.csv), SAMPLE_ROWS, progress)
        truth, why = None, ""
        if steward:
            try:
                kept = real_at not in ("", "-")
                truth = real_rows(real_at, spec, SAMPLE_ROWS, progress) if kept else None
            except FileError:
                if real:
                    raise
            if truth is None:
                why = "The real table is not where it was: only synthetic rows are shown."
    name = path.name.removesuffix(".json").removesuffix(".public").removesuffix(".audit")
    page_at = Path(output) if output else path.parent / f"{name}.report{'' if steward else '.public'}.html"
    signature = named_keys(path) if path.name != name else None
    relations = spec.stated.relations
    rules = [rule.words for rule in relations.kept]
    computed = [one.column.name for one in relations.computed]
    text = page(Shown(document, spec.released, made, truth, name, why, signature, rules, computed))
    write_file(page_at, text.encode(), 0o600 if steward else 0o644)
    if not quiet:
        keep = "confidential: keep it" if steward else "may be published"
        typer.echo(f"{page_at} ({keep})")
