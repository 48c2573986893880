"""A release as others file it: registry entry, Croissant, table schema."""

from __future__ import annotations

import json

import jsonschema
import pytest
import yaml

from dpsynth_cli.release.documents.registry_entry import FILL_IN

TEXT = {"type": "string", "minLength": 1}
# What the OpenDP deployments registry requires and enumerates, as far as an entry of ours has it.
REGISTRY = {
    "type": "object",
    "additionalProperties": False,
    "required": ["url_slug", "deployment"],
    "properties": {
        "url_slug": {"type": "string", "pattern": "^[a-z0-9-]+$"},
        "deployment": {
            "type": "object",
            "additionalProperties": False,
            "required": ["basic", "administrative"],
            "properties": {
                "basic": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": [
                        "name", "data_curators", "description", "intended_use", "data_product_type",
                        "data_product_region", "publication_date",
                    ],
                    "properties": {
                        "name": TEXT,
                        "data_curators": {
                            "type": "array",
                            "minItems": 1,
                            "items": {
                                "required": ["data_curator_name", "data_curator_type"],
                                "properties": {
                                    "data_curator_name": TEXT,
                                    "data_curator_type": {"enum": ["Government", "Industry", "Nonprofit"]},
                                },
                            },
                        },
                        "description": TEXT,
                        "intended_use": TEXT,
                        "data_product_type": {"const": "Synthetic data"},
                        "data_product_region": TEXT,
                        "data_product_sector": {
                            "enum": [
                                "Technology", "Healthcare", "Education", "Government", "Energy", "Finance",
                            ]
                        },
                        "publication_date": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"},
                    },
                },
                "dp_variant": {
                    "additionalProperties": False,
                    "properties": {
                        "variant_name": {"enum": ["Pure DP", "Approximate DP"]},
                        "data_domain": TEXT,
                        "unprotected_quantities": TEXT,
                    },
                },
                "privacy_loss": {
                    "additionalProperties": False,
                    "properties": {
                        "privacy_unit": TEXT,
                        "privacy_unit_details": TEXT,
                        "privacy_parameters": {
                            "additionalProperties": False,
                            "properties": {key: {"type": "number"} for key in ("epsilon", "delta", "rho")},
                        },
                        "privacy_parameters_details": TEXT,
                    },
                },
                "deployment_model": {
                    "additionalProperties": False,
                    "properties": {
                        "model_name": {"const": "Central"},
                        "model_name_details": TEXT,
                        "release_type": {"enum": ["One release", "Many releases"]},
                        "data_source_type": {"enum": ["Static", "Dynamic"]},
                        "access_type": {"enum": ["Interactive", "Non-interactive"]},
                        "access_type_details": TEXT,
                    },
                },
                "implementation": {
                    "additionalProperties": False,
                    "properties": dict.fromkeys(
                        ("preprocessing_and_hyperparameter_tuning", "mechanisms", "composition",
                         "post_processing", "justification", "utility", "additional_information"),
                        TEXT,
                    ),
                },
                "administrative": {
                    "additionalProperties": False,
                    "required": ["status", "registry_authors", "tier"],
                    "properties": {
                        "status": {"const": "Draft"},
                        "registry_authors": {"type": "array", "minItems": 1, "items": TEXT},
                        "tier": {"enum": [1, 2, 3]},
                    },
                },
            },
        },
    },
}  # fmt: skip
SAID = ("--curator", "Us", "--curator-type", "Nonprofit", "--use", "teaching", "--region", "Here", "--sector",
        "Education", "--author", "Ann", "--license", "https://creativecommons.org/publicdomain/zero/1.0/",
        "--url", "https://example.org/people")  # fmt: skip


@pytest.mark.parametrize(
    ("neighbours", "delta"), [("add_remove", None), ("replace_one", None), ("add_remove", "1e-6")]
)
def test_the_entry_fits_the_registry(dpsynth, people, tmp_path, neighbours, delta):
    assert dpsynth("release", people("marginals", "0.5", neighbours, delta)).code == 0
    ran = dpsynth("record", "out/people.audit.public.json", *SAID, "--json")
    assert ran.code == 0, ran.err
    entry = yaml.safe_load((tmp_path / "out/people.registry.yaml").read_text())
    jsonschema.validate(entry, REGISTRY)
    deployment = entry["deployment"]
    parameters = deployment["privacy_loss"]["privacy_parameters"]
    assert parameters["epsilon"] == 0.5
    assert ("delta" in parameters, "rho" in parameters) == (delta is not None, delta is not None)
    assert (deployment["dp_variant"]["unprotected_quantities"] == "The number of rows.") == (
        neighbours == "replace_one"
    )
    assert "marginals" in deployment["implementation"]["mechanisms"]
    # Only its justification and tuning, and who is asked about the closed table.
    assert ran.json["to_be_filled_in"] == ["out/people.registry.yaml", "out/people.dcat.json"]


def test_croissant_names_the_file_and_every_column(dpsynth, people, tmp_path):
    assert dpsynth("release", people("marginals")).code == 0
    assert dpsynth("record", "out/people.audit.json", *SAID).code == 0
    audit = json.loads((tmp_path / "out/people.audit.json").read_text())
    sidecar = json.loads((tmp_path / "out/people.croissant.json").read_text())
    required = {"@context", "@type", "conformsTo", "description", "license", "name", "url", "creator",
                "datePublished", "distribution"}  # fmt: skip
    assert required <= set(sidecar)
    assert sidecar["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    (file,) = sidecar["distribution"]
    assert (file["sha256"], file["encodingFormat"]) == (audit["output"]["sha256"], "text/csv")
    fields = sidecar["recordSet"][0]["field"]
    assert [(f["name"], f["dataType"]) for f in fields] == [
        ("age", "sc:Integer"), ("score", "sc:Float"), ("group", "sc:Text"),
    ]  # fmt: skip
    for field in fields:
        assert field["@id"] == f"rows/{field['name']}"
        assert field["source"] == {"fileObject": {"@id": "people.csv"}, "extract": {"column": field["name"]}}
    used = set(sidecar) | set(file) | set(fields[0]) | set(sidecar["recordSet"][0])
    plain = (
        "name description license url creator datePublished version distribution contentUrl encodingFormat"
    )
    known = {*sidecar["@context"], *plain.split(), "sha256"}
    assert {term for term in used if term[0] != "@" and ":" not in term} <= known
    assert str(tmp_path) not in json.dumps(sidecar)


def test_the_table_schema_says_what_a_cell_may_be(dpsynth, people, tmp_path):
    assert dpsynth("release", people("marginals")).code == 0
    assert dpsynth("record", "out/people.audit.json").code == 0
    schema = json.loads((tmp_path / "out/people.schema.json").read_text())
    assert schema["fields"] == [
        {"name": "age", "type": "integer", "constraints": {"required": False, "minimum": 0, "maximum": 99}},
        {
            "name": "score",
            "type": "number",
            "constraints": {"required": True, "minimum": 0.0, "maximum": 1.0},
        },
        {
            "name": "group",
            "type": "string",
            "categories": ["a", "b", "c,d"],
            "categoriesOrdered": False,
            "constraints": {"required": True, "enum": ["a", "b", "c,d"]},
        },
    ]
    entry = yaml.safe_load((tmp_path / "out/people.registry.yaml").read_text())
    assert entry["deployment"]["basic"]["intended_use"] == FILL_IN


def test_what_was_paid_for_is_the_utility_of_the_entry_and_nothing_else_is(dpsynth, people, tmp_path):
    spec = people("marginals")
    assert dpsynth("release", spec).code == 0
    assert dpsynth("record", "out/people.audit.json").code == 0
    entry = yaml.safe_load((tmp_path / "out/people.registry.yaml").read_text())
    assert "utility" not in entry["deployment"]["implementation"]
    assert dpsynth("release", spec, "--set", "evaluate.epsilon=0.5", "--replace").code == 0
    assert dpsynth("record", "out/people.audit.json").code == 0
    entry = yaml.safe_load((tmp_path / "out/people.registry.yaml").read_text())
    assert "By a part of the budget (epsilon 0.5): " in entry["deployment"]["implementation"]["utility"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["out/people.audit.json", "--sector", "Fun"], 2, "--sector is Fun; it must be one of Technology"),
        (["gone.json"], 5, "cannot read the audit gone.json"),
        (["out/people.audit.json", "-o", "nowhere"], 5, "there is no folder nowhere."),
        (["spec.yaml"], 2, "spec.yaml is not an audit"),
    ],
)
def test_what_cannot_be_recorded_is_said(dpsynth, people, words, code, said):
    assert dpsynth("release", people("marginals")).code == 0
    ran = dpsynth("record", *words)
    assert (ran.code, said in ran.err) == (code, True), ran.err
