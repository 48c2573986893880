"""dpsynth record: the release as others file it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsynth_cli.cli.options import Json, Quiet, print_json


def command(
    audit: Annotated[
        str, typer.Argument(metavar="AUDIT", help="The .audit.json or .audit.public.json of a release.")
    ],
    folder: Annotated[
        str | None, typer.Option("--output", "-o", help="The folder to write to; default: beside the audit.")
    ] = None,
    curator: Annotated[str | None, typer.Option(help="Who publishes the table.")] = None,
    curator_type: Annotated[str | None, typer.Option(help="Government, Industry or Nonprofit.")] = None,
    use: Annotated[str | None, typer.Option(help="What the table is meant for.")] = None,
    region: Annotated[str | None, typer.Option(help="The region it describes, or whose laws apply.")] = None,
    sector: Annotated[
        str | None, typer.Option(help="Technology, Healthcare, Education, Government, Energy or Finance.")
    ] = None,
    author: Annotated[str | None, typer.Option(help="Who files the registry entry.")] = None,
    license: Annotated[
        str | None, typer.Option(help="The licence of the synthetic table, best as a URL.")
    ] = None,
    url: Annotated[str | None, typer.Option(help="Where the synthetic table is published.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write the release as an entry of the OpenDP deployments registry (YAML), with a Croissant description,
    a DCAT-AP record (HealthDCAT-AP if the sector is Healthcare) and a Frictionless table schema beside it.

    All come from the public part of the audit. What the tool cannot know and you do not say is marked
    TO BE FILLED IN.
    """
    import json as jsons

    import yaml

    from dpsynth_cli.domain import CsvOptions, as_written
    from dpsynth_cli.errors import FileError, UsageError
    from dpsynth_cli.release.documents.audit import public_part
    from dpsynth_cli.release.documents.dcat import dcat_record
    from dpsynth_cli.release.documents.registry_entry import (
        CURATORS,
        FILL_IN,
        SECTORS,
        Facts,
        croissant,
        registry_entry,
        table_schema,
    )
    from dpsynth_cli.release.files.publish import write_file
    from dpsynth_cli.release.found import released_spec
    from dpsynth_cli.release.verify import load_audit

    for option, value, allowed in (("curator-type", curator_type, CURATORS), ("sector", sector, SECTORS)):
        if value is not None and value not in allowed:
            raise UsageError(f"--{option} is {value}; it must be one of {', '.join(allowed)}.")
    path = Path(audit)
    document = public_part(load_audit(path))
    if "charges" not in document["budget"]:
        raise UsageError(
            f"{audit} is of a release by groups, which is not differentially private: the registry has no "
            "place for it.",
            next_step="",
        )
    made = released_spec(document)
    csv = made.csv if document["output"]["file"].endswith(".csv") else CsvOptions(canonical=True)
    domain, _ = as_written(made.released, csv)
    facts = Facts(
        curator or FILL_IN,
        curator_type or FILL_IN,
        use or FILL_IN,
        region or FILL_IN,
        sector,
        author or FILL_IN,
        license or FILL_IN,
        url or FILL_IN,
    )
    entry = registry_entry(document, domain, facts)
    stem = path.name.removesuffix(".json").removesuffix(".public").removesuffix(".audit")
    at = Path(folder) if folder else path.parent
    if not at.is_dir():
        raise FileError(f"there is no folder {at}.", "", "Make it first, or name another with --output.")
    slug = entry["url_slug"].replace("-", "_") or "release"
    texts = {
        at / f"{slug}.registry.yaml": yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, width=100),
    }
    for kind, sidecar in (
        ("croissant", croissant(document, domain, facts)),
        ("dcat", dcat_record(document, facts)),
        ("schema", table_schema(domain)),
    ):
        texts[at / f"{stem}.{kind}.json"] = jsons.dumps(sidecar, indent=2, ensure_ascii=False) + "\n"
    for file, text in texts.items():
        write_file(file, text.encode())
    left = [str(file) for file, text in texts.items() if FILL_IN in text]
    if json:
        print_json({"files": [str(file) for file in texts], "to_be_filled_in": left})
    elif not quiet:
        for file in texts:
            typer.echo(f"{file}{' (look for ' + FILL_IN + ')' if str(file) in left else ''}")
