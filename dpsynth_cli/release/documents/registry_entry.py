"""A release as others file it: an entry of the OpenDP deployments registry (YAML), a Croissant description
(JSON-LD) and a Frictionless table schema. All from the public audit; what the tool cannot know is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.release.documents.guarantee import kept_of_a_unit
from dpsynth_cli.spec.columns import column_document

FILL_IN = "TO BE FILLED IN"
CURATORS = ("Government", "Industry", "Nonprofit")
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
CROISSANT = "http://mlcommons.org/croissant/1.0"
TABLE_SCHEMA = "https://datapackage.org/profiles/2.0/tableschema.json"
_TERMS = (
    "citeAs column extract field fileObject fileProperty fileSet format includes isLiveDataset jsonPath key "
    "md5 parentField path recordSet references regex repeated replace separator source subField transform"
)


@dataclass(frozen=True)
class Facts:
    """What only people know about a release."""

    curator: str = FILL_IN
    curator_type: str = FILL_IN
    intended_use: str = FILL_IN
    region: str = FILL_IN
    sector: str | None = None
    author: str = FILL_IN
    license: str = FILL_IN
    url: str = FILL_IN


def _children(audit: Mapping[str, Any]) -> str:
    """The tables of children, in words."""
    said = [
        f"with {one['name']}, {one['output']['rows']:,} rows that belong to its rows by {one['foreign_key']} "
        f"({', '.join(one['output']['columns'])}), "
        for one in audit.get("tables", ())
    ]
    return "".join(said)


def registry_entry(audit: Mapping[str, Any], domain: Domain, facts: Facts) -> dict[str, Any]:
    """The release as an entry of the OpenDP deployments registry, tier 3, status Draft."""
    release, guarantee, budget = audit["release"], audit["guarantee"], audit["budget"]
    delta = guarantee["delta"]
    parameters: dict[str, float] = {"epsilon": float(guarantee["epsilon"])}
    if delta is not None:
        parameters |= {"delta": float(delta), "rho": float(Fraction(budget["spent"]))}
    unit = {
        "add_remove": "Adjacent tables differ by one row that is in one of them only (unbounded; symmetric "
        "distance 1). The number of rows is private.",
        "replace_one": "Adjacent tables have the same number of rows and differ in the values of one of them "
        "(bounded). The number of rows is public.",
    }[guarantee["neighbours"]]
    column, details = guarantee.get("unit_column"), "A person with several rows is protected row by row."
    if column is not None:
        unit = {
            "add_remove": f"Adjacent tables differ by all rows of one {column}, which are in one of them "
            "only.",
            "replace_one": f"Adjacent tables differ in all rows of one {column}, which are any others in "
            "one of them.",
        }[guarantee["neighbours"]]
        details = (
            f"Rows without a {column} are one unit. At most {kept_of_a_unit(guarantee)} of a unit are "
            "used, chosen by a secret key and the unit's own rows. The number of rows and of units is "
            "private."
        )
    unprotected = (
        "The number of rows."
        if guarantee["neighbours"] == "replace_one" and column is None
        else "No quantity of the real table."
    )
    per = f" of one {guarantee['unit_per']}" if "unit_per" in guarantee else ""
    stream = mechanisms()[audit["mechanism"]["name"]].stream
    if stream:
        unit = guarantee["statement"]
        unprotected = "How often rows were pushed, and how many where the statement says so."
    steps = ", ".join(dict.fromkeys(f"{line['step']} ({line['question']})" for line in budget["charges"]))
    noise = " and ".join(sorted({line["noise"].replace("_", " ") for line in budget["charges"]} - {"none"}))
    mechanism, output = audit["mechanism"], audit["output"]
    basic = {
        "name": release["name"],
        "data_curators": [{"data_curator_name": facts.curator, "data_curator_type": facts.curator_type}],
        "description": (
            f"A synthetic table of {output['rows']:,} rows and {len(domain.columns)} columns "
            f"({', '.join(column.name for column in domain)}), {_children(audit)}drawn from differentially "
            "private answers about a real one. The answers are published with it, so that anybody can "
            "rebuild it."
        ),
        "intended_use": facts.intended_use,
        "data_product_type": "Synthetic data",
        "data_product_region": facts.region,
        **({"data_product_sector": facts.sector} if facts.sector else {}),
        "publication_date": release["day"],
    }
    variant = {
        "variant_name": "Pure DP" if delta is None else "Approximate DP",
        "data_domain": (
            "Tables of any number of rows with the declared columns. Bounds and categories are public "
            "knowledge."
        ),
        "unprotected_quantities": unprotected,
    }
    privacy_loss = {
        "privacy_unit": "One row"
        if column is None
        else f"All rows{' of all tables' * ('tables' in audit)} of one {column}{per}",
        "privacy_unit_details": f"{unit} {details}",
        "privacy_parameters": parameters,
        "privacy_parameters_details": guarantee["statement"],
    }
    model = {
        "model_name": "Central",
        "model_name_details": (
            "The curator holds the table and runs dpsynth; only the synthetic table, the noisy answers and "
            "the public audit leave."
        ),
        "release_type": "Many releases" if stream else "One release",
        "data_source_type": "Dynamic" if stream else "Static",
        "access_type": "Non-interactive",
        "access_type_details": "The synthetic table and the noisy answers are published as files.",
    }
    implementation = {
        "preprocessing_and_hyperparameter_tuning": (
            "Values are clamped to the declared bounds and categories, row by row. What dpsynth chose, it "
            "chose from public facts and from answers that were paid for. How bounds, parameters and epsilon "
            f"were chosen for the spec: {FILL_IN}."
        ),
        "mechanisms": (
            f"{mechanism['name']}: {mechanism['citation']}. Questions: {steps}. Noise: exact {noise}, on "
            "integers, from the operating system's cryptographic generator; no floating-point number "
            f"carries a privacy claim. dpsynth {release['versions']['dpsynth']}."
        ),
        "composition": (
            f"Sequential composition in exact fractions of {budget['currency']}: {len(budget['charges'])} "
            f"charges add up to {budget['spent']} of {budget['total']}."
        ),
        "post_processing": (
            "Noisy counts are made consistent and non-negative, and rows are drawn from them. `dpsynth "
            "verify` repeats it from the published answers, byte for byte."
        ),
        "justification": FILL_IN,
    }
    return {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", release["name"].lower()).strip("-"),
        "deployment": {
            "basic": basic,
            "dp_variant": variant,
            "privacy_loss": privacy_loss,
            "deployment_model": model,
            "implementation": implementation | _utility(audit),
            "administrative": {"status": "Draft", "registry_authors": [facts.author], "tier": 3},
        },
    }


def _utility(audit: Mapping[str, Any]) -> dict[str, str]:
    """Errors that were paid for; nothing else about utility is public."""
    paid = audit.get("evaluation")
    if not paid:
        return {}
    said = [
        f"mean total variation distance of {ways}-way marginals {paid[key]['mean']} "
        f"(standard deviation of its noise {paid[key]['noise']})"
        for ways, key in ((1, "tvd1"), (2, "tvd2"), (3, "tvd3"))
        if key in paid
    ]
    return {"utility": f"By a part of the budget (epsilon {paid['epsilon']}): {'; '.join(said)}."}


def croissant(audit: Mapping[str, Any], domain: Domain, facts: Facts) -> dict[str, Any]:
    """The synthetic file as a Croissant 1.0 data set."""
    output, name = audit["output"], audit["release"]["name"]
    parquet = output["file"].endswith(".parquet")
    file = {
        "@type": "cr:FileObject",
        "@id": output["file"],
        "name": output["file"],
        "contentUrl": output["file"],
        "encodingFormat": "application/vnd.apache.parquet" if parquet else "text/csv",
        "sha256": output["sha256"],
    }
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"rows/{column.name}",
            "name": column.name,
            "description": _words(column),
            "dataType": _croissant_type(column),
            "source": {"fileObject": {"@id": output["file"]}, "extract": {"column": column.name}},
        }
        for column in domain
    ]
    context: dict[str, Any] = {
        "@language": "en",
        "@vocab": "https://schema.org/",
        "sc": "https://schema.org/",
        "cr": "http://mlcommons.org/croissant/",
        "rai": "http://mlcommons.org/croissant/RAI/",
        "dct": "http://purl.org/dc/terms/",
        "conformsTo": "dct:conformsTo",
        "data": {"@id": "cr:data", "@type": "@json"},
        "examples": {"@id": "cr:examples", "@type": "@json"},
        "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    }
    return {
        "@context": context | {term: f"cr:{term}" for term in _TERMS.split() if term not in context},
        "@type": "sc:Dataset",
        "conformsTo": CROISSANT,
        "name": name,
        "description": f"Synthetic rows. {audit['guarantee']['statement']}",
        "license": facts.license,
        "url": facts.url,
        "creator": {"@type": "sc:Organization", "name": facts.curator},
        "datePublished": audit["release"]["day"],
        "version": "1.0.0",
        "isLiveDataset": False,
        "rai:personalSensitiveInformation": "None: the rows are synthetic, and differentially private.",
        "distribution": [file],
        "recordSet": [
            {"@type": "cr:RecordSet", "@id": "rows", "name": "rows", "description": "One synthetic row each.",
             "field": fields}
        ],
    }  # fmt: skip


def table_schema(domain: Domain) -> dict[str, Any]:
    """The columns of the synthetic file as a Frictionless table schema."""
    return {
        "$schema": TABLE_SCHEMA,
        "fields": [_frictionless(column) for column in domain],
        "missingValues": [""],
    }


def _frictionless(column: Column) -> dict[str, Any]:
    kind = {"continuous": "number", "ordinal": "string", "nominal": "string"}.get(column.type, column.type)
    field: dict[str, Any] = {"name": column.name, "type": kind}
    constraints: dict[str, Any] = {"required": not column.nullable}
    form = column.format
    if column.type == "boolean":
        field |= {"trueValues": list(form.true) or ["true"], "falseValues": list(form.false) or ["false"]}
    elif column.categories:
        field |= {"categories": list(column.categories), "categoriesOrdered": column.type == "ordinal"}
        constraints["enum"] = list(column.categories)
    elif not column.categorical:
        constraints |= dict(zip(("minimum", "maximum"), column_document(column)["bounds"], strict=True))
    if column.type == "datetime" or form.date:
        field["format"] = form.date or "any"
    if kind in ("number", "integer") and not form.plain_numbers:
        signs = {"decimalChar": form.decimal, "groupChar": form.thousands}
        field |= {name: sign for name, sign in signs.items() if sign}
        field |= {"bareNumber": False} if form.currency or form.percent else {}
    if column.labels:
        meant = zip(column.categories, column.labels, strict=True)
        field["categories"] = [{"value": value, "label": label} for value, label in meant]
    if form.missing:
        field["missingValues"] = list(form.missing)
    return field | {"constraints": constraints}


def _croissant_type(column: Column) -> str:
    return {
        "continuous": "sc:Float",
        "integer": "sc:Integer",
        "boolean": "sc:Boolean",
        "date": "sc:Date",
        "datetime": "sc:DateTime",
    }.get(column.type, "sc:Text")


def _words(column: Column) -> str:
    kept = ", may be missing" if column.nullable else ""
    if column.type == "boolean":
        return f"true or false{kept}"
    if column.categorical:
        return f"{column.type}: {', '.join(column.categories)}{kept}"
    low, high = column_document(column)["bounds"]
    return f"{column.type} from {low} to {high}{kept}"
