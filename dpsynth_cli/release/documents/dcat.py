"""The release as DCAT-AP 3 has it (JSON-LD): the closed table, with the synthetic file as its sample.

HealthDCAT-AP is the same with a few properties more. From the public audit alone: nothing about the closed
table but its name, and so not how many rows it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsynth_cli.release.documents.registry_entry import FILL_IN, Facts

_CONTEXT = {
    "adms": "http://www.w3.org/ns/adms#",
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "healthdcatap": "http://healthdataportal.eu/ns/health#",
    "spdx": "http://spdx.org/rdf/terms#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_AUTHORITY = "http://publications.europa.eu/resource/authority"
_MEDIA = "https://www.iana.org/assignments/media-types"
# (media type, the Publications Office's file type)
_FORMATS = {"csv": ("text/csv", "CSV"), "parquet": ("application/vnd.apache.parquet", "PARQUET")}


def dcat_record(audit: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    """A dcat:Dataset for the closed table, whose adms:sample is the synthetic file."""
    output, name = audit["output"], audit["budget"]["ledger"]["dataset"]
    media, kind = _FORMATS["parquet" if output["file"].endswith(".parquet") else "csv"]
    sample = {
        "@type": "dcat:Distribution",
        "dct:title": _english(f"{audit['release']['name']}: a synthetic sample"),
        "dct:description": _english(f"{output['rows']:,} synthetic rows. {audit['guarantee']['statement']}"),
        "dct:issued": {"@type": "xsd:date", "@value": audit["release"]["day"]},
        "dct:license": _link(facts.license),
        "dct:format": {"@id": f"{_AUTHORITY}/file-type/{kind}"},
        "dcat:accessURL": _link(facts.url),
        "dcat:mediaType": {"@id": f"{_MEDIA}/{media}"},
        "spdx:checksum": {
            "@type": "spdx:Checksum",
            "spdx:algorithm": {"@id": "spdx:checksumAlgorithm_sha256"},
            "spdx:checksumValue": {"@type": "xsd:hexBinary", "@value": output["sha256"]},
        },
    }
    record = {
        "@context": _CONTEXT,
        "@type": "dcat:Dataset",
        "dct:identifier": name,
        "dct:title": _english(name),
        "dct:description": _english(FILL_IN),
        "dct:accessRights": {"@id": f"{_AUTHORITY}/access-right/NON_PUBLIC"},
        "dct:publisher": {"@type": "foaf:Agent", "foaf:name": facts.curator},
        "dcat:contactPoint": _link(FILL_IN),
        "adms:sample": sample,
    }
    if facts.sector == "Healthcare":
        record |= {
            "healthdcatap:hdab": {"@type": "foaf:Agent", "foaf:name": FILL_IN},
            "healthdcatap:healthCategory": _link(FILL_IN),
            "dct:provenance": {"@type": "dct:ProvenanceStatement", "dct:description": _english(FILL_IN)},
        }
    return record


def _english(text: str) -> dict[str, str]:
    return {"@language": "en", "@value": text}


def _link(text: str) -> Any:
    """An IRI where it is one, else the text as it is."""
    return {"@id": text} if text.startswith(("http://", "https://", "urn:", "mailto:")) else text
