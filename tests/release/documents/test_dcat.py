"""The release as DCAT-AP has it."""

import hashlib
import json

from dpsynth_cli.release.documents.registry_entry import FILL_IN


def recorded(dpsynth, people, tmp_path, *words):
    assert dpsynth("release", people()).code == 0
    ran = dpsynth("record", "out/people.audit.public.json", *words, "--json")
    assert ran.code == 0, ran.err
    assert str(tmp_path / "out/people.dcat.json") in [str(tmp_path / file) for file in ran.json["files"]]
    return json.loads((tmp_path / "out/people.dcat.json").read_text())


def test_the_synthetic_file_is_the_sample_of_a_closed_table(dpsynth, people, tmp_path):
    url = "https://example.org/people.csv"
    record = recorded(dpsynth, people, tmp_path, "--curator", "Statistics Office", "--url", url)
    assert record["@type"] == "dcat:Dataset"
    assert record["dct:accessRights"]["@id"].endswith("/access-right/NON_PUBLIC")
    assert record["dct:publisher"]["foaf:name"] == "Statistics Office"
    sample = record["adms:sample"]
    assert sample["dcat:accessURL"] == {"@id": url}
    assert sample["dct:format"]["@id"].endswith("/file-type/CSV")
    assert "1.0-differentially private" in sample["dct:description"]["@value"].replace("1-diff", "1.0-diff")
    digest = hashlib.sha256((tmp_path / "out/people.csv").read_bytes()).hexdigest()
    assert sample["spdx:checksum"]["spdx:checksumValue"]["@value"] == digest
    assert FILL_IN in json.dumps(record)
    assert "healthdcatap:hdab" not in record
    prefixes = {key.split(":")[0] for key in [*record, *sample] if ":" in key}
    assert prefixes <= set(record["@context"])


def test_health_has_its_own_properties(dpsynth, people, tmp_path):
    record = recorded(dpsynth, people, tmp_path, "--sector", "Healthcare")
    assert {"healthdcatap:hdab", "healthdcatap:healthCategory", "dct:provenance"} <= set(record)


def test_nothing_of_the_closed_table_but_its_name_is_told(dpsynth, people, tmp_path):
    record = recorded(dpsynth, people, tmp_path, "--sector", "Healthcare")
    assert not [key for key in record if "number" in key.lower() or "records" in key.lower()]
    assert "people.csv" not in json.dumps(
        {key: value for key, value in record.items() if key != "adms:sample"}
    )
