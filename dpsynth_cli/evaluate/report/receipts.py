"""Hashes, signature, versions: what anybody needs to check the release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpsynth_cli.evaluate.report.markup import facts, paragraph, section, text


def receipts(audit: Mapping[str, Any], name: str, signature: tuple[str, Sequence[str]] | None) -> str:
    """`signature`: the file of the signature and the keys that it names."""
    output, transcript = audit["output"], audit.get("transcript")
    rows: list[tuple[str, object]] = [("Release", audit["release"]["id"])]
    rows.append((f"SHA-256 of {output['file']}", output["sha256"]))
    for own in (table["output"] for table in audit.get("tables", ())):
        rows.append((f"SHA-256 of {own['file']}", own["sha256"]))
    if transcript:
        rows.append((f"SHA-256 of {transcript['file']}", transcript["sha256"]))
        rows.append(("Seed of the sampling", audit["sampling_seed"]))
    rows += [
        ("SHA-256 of the spec", audit["spec_sha256"]),
        ("Ledger entry", audit["budget"]["ledger"]["hash"]),
    ]
    rows.append(("Method", audit["mechanism"]["citation"]))
    versions = audit["release"]["versions"]
    rows.append(("Made by", ", ".join(f"{what} {version}" for what, version in versions.items())))
    public = f"{name}.audit.public.json"
    commands = [f"sha256sum {output['file']}", f"dpsynth verify {public}"]
    signed = "The release is not signed."
    if signature:
        file, keys = signature
        rows.append((f"{file} names the key", ", ".join(keys)))
        commands.append(f"dpsynth verify {public} --key PUBLISHER.pub")
        signed = (
            "The release is signed. That the key is the publisher's is what the signature cannot say: get "
            "PUBLISHER.pub from the publisher, by another way."
        )
    what = (
        "rebuilds the synthetic file from the transcript on a machine that does not have the data, compares "
        "every byte, and adds up every charge."
        if transcript
        else "compares the files with what the audit says of them."
    )
    return section(
        "receipts",
        "Receipts: check it yourself",
        facts(rows, "facts long"),
        paragraph("Keep the published files in one folder, and run there:"),
        f"<pre>{text(chr(10).join(commands))}</pre>",
        paragraph(f"dpsynth verify {what} {signed}", "small"),
    )
