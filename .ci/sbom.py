"""The software bill of materials, CycloneDX 1.6, of what `requirements.lock` pins.

    python .ci/sbom.py > dpsynth-cli.cdx.json

It is made of the lock and the version alone, so that the same commit gives the same bytes; and each part has
the hashes that `pip install --require-hashes` checks.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

ROOT = Path(__file__).resolve().parent.parent
PIN = re.compile(
    r"^(?P<name>[a-z0-9][a-z0-9._-]*)==(?P<version>[^\s;\\]+)(?: ; (?P<marker>[^\\]+))?", re.MULTILINE
)


def parts(lock: str) -> list[dict[str, Any]]:
    """The packages of a lock, in order."""
    pins = list(PIN.finditer(lock))
    found = []
    for pin, after in zip(pins, [*[one.start() for one in pins[1:]], len(lock)], strict=True):
        name, version = pin["name"], pin["version"]
        purl = f"pkg:pypi/{name}@{version}"
        part: dict[str, Any] = {"type": "library", "bom-ref": f"{purl}#{len(found)}", "name": name}
        part |= {"version": version, "purl": purl, "scope": "required"}
        part["externalReferences"] = [
            {
                "type": "distribution",
                "url": f"https://pypi.org/project/{name}/{version}/",
                "hashes": [{"alg": "SHA-256", "content": digest}],
            }
            for digest in re.findall(r"--hash=sha256:([0-9a-f]{64})", lock[pin.start() : after])
        ]
        if pin["marker"]:
            part["properties"] = [{"name": "python:marker", "value": pin["marker"].strip()}]
        found.append(part)
    return found


def bill(lock: str, version: str) -> dict[str, Any]:
    """The whole document."""
    own = f"pkg:pypi/dpsynth-cli@{version}"
    components = parts(lock)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, own + lock)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "dpsynth-cli",
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": [part["bom-ref"] for part in components]}],
    }


def main() -> None:
    text = (ROOT / "dpsynth_cli/__init__.py").read_text()
    version = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    assert version is not None
    document = bill((ROOT / "requirements.lock").read_text(), version[1])
    json.dump(document, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
