"""The files of a release: their names, and putting all of them in place together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth_cli import disk
from dpsynth_cli.errors import FileError, UsageError
from dpsynth_cli.hashing import file_sha256, sha256
from dpsynth_cli.release.files import replaced
from dpsynth_cli.spec.spec import Spec

if TYPE_CHECKING:  # what writes tables takes long to import
    from dpsynth_cli.release.files.write import Pending
    from dpsynth_cli.release.tables import Written


@dataclass(frozen=True)
class Files:
    """Names beside the output: NAME.transcript.arrow, NAME.audit.json, NAME.audit.public.json."""

    folder: Path
    stem: str
    output: Path | None  # None: standard output
    others: tuple[Path, ...] = ()  # of tables of children

    @classmethod
    def of(cls, spec: Spec) -> Files:
        """Beside the output file; for standard output, in the current folder under the spec's name."""
        if spec.output == "-":
            return cls(Path.cwd(), spec.name, None)
        path, children = Path(spec.output), spec.tables.children if spec.tables else ()
        return cls(path.parent, path.stem, path, tuple(Path(child.spec.output) for child in children))

    @property
    def path(self) -> str:
        """The output as `write_table` takes it."""
        return "-" if self.output is None else str(self.output)

    @property
    def output_name(self) -> str:
        return "-" if self.output is None else self.output.name

    @property
    def transcript(self) -> Path:
        return self.folder / f"{self.stem}.transcript.arrow"

    @property
    def audit(self) -> Path:
        return self.folder / f"{self.stem}.audit.json"

    @property
    def public_audit(self) -> Path:
        return self.folder / f"{self.stem}.audit.public.json"

    def partial(self, release_id: str) -> Path:
        """The unfinished transcript of one release: hidden, for its owner only."""
        return self.folder / f".{self.stem}.{release_id}.partial"

    @property
    def signature(self) -> Path:
        return self.folder / f"{self.stem}.intoto.jsonl"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """The folder, for one process at a time."""
        with disk.locked_folder(self.folder):
            yield

    def hashes(self) -> dict[str, str]:
        """The SHA-256 of the published files that are under their names, as the ledger records them."""
        named = {"output": self.output, "public_audit": self.public_audit, "transcript": self.transcript}
        named |= {f"output {path.name}": path for path in self.others}
        return {
            key: file_sha256(path) for key, path in named.items() if path is not None and disk.exists(path)
        }

    def named(self, transcript: bool = True) -> dict[str, str]:
        """For the receipt and the steward's audit."""
        return {
            "output": self.path,
            **{f"output {path.name}": str(path) for path in self.others},
            **({"transcript": str(self.transcript)} if transcript else {}),
            "audit": str(self.audit),
            "public_audit": str(self.public_audit),
        }

    def check_writable(self) -> None:
        """Fail now, before anything is charged, if the folder cannot take files."""
        try:
            disk.make_folder(self.folder)
            probe = self.folder / f".{self.stem}.{disk.process()}.probe"
            disk.create(probe).close()
            disk.remove(probe)
        except OSError as error:
            raise FileError(
                f"cannot write to {self.folder}: {error.strerror}.",
                next_step="Choose another folder with --output.",
            ) from None
        self._check_own()
        for path in (self.output, *self.others):
            if path is not None and disk.is_folder(path):
                raise FileError(f"the output {path} is a folder.", next_step="Name a file with --output.")

    def _check_own(self) -> None:
        """Refuse to put this release's transcript and audit over those of another table."""
        try:
            other = json.loads(disk.read(self.public_audit))["output"]["file"]
        except (OSError, ValueError, KeyError, TypeError):
            return
        if other != self.output_name:
            raise UsageError(
                f"{self.public_audit} belongs to the release of {other}: its receipts would be lost.",
                next_step="Choose an output with another name, or move those files away.",
            )


def write_file(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a document under its name in one step."""
    temporary = path.with_name(f".{path.name}.{disk.process()}.tmp")
    try:
        with disk.create(temporary, mode) as file:
            file.write(data)
            disk.sync(file)
        disk.replace(temporary, path)
    except OSError as error:
        disk.remove(temporary)
        raise FileError(f"cannot write {path}: {error.strerror}.", "", "Choose another place.") from None


def publish(
    files: Files,
    release_id: str,
    dated: float,
    pending: Pending | Written,
    transcript: bytes | None,
    steward: bytes,
    public: bytes,
    record: Callable[[dict[str, str]], object],
    keeps: bool = True,
) -> None:
    """Put all files of a release in place together: aside first, then their hashes on record, then renamed.

    `record` makes the hashes of what is published durable, in the ledger. The files are `dated` to a time
    before a row was read: how long it took is not told. A release without a
    transcript leaves none under its name: it would be that of another release. Another release whose files
    have these names is kept in a folder of its own, unless this replaces it by its nature (`keeps` False:
    a stream's snapshot). The folder is locked meanwhile, so that two releases of one output never mix
    their files.
    """
    documents = {} if transcript is None else {files.transcript: (transcript, 0o644)}
    documents |= {files.audit: (steward, 0o600), files.public_audit: (public, 0o644)}
    hashes = {"output": pending.sha256, **pending.hashes, "public_audit": sha256(public)}
    if transcript is not None:
        hashes["transcript"] = sha256(transcript)
    waiting: dict[Path, Path] = {}
    try:
        with files.locked():
            for path, (data, mode) in documents.items():
                temporary = path.with_name(f".{path.name}.{release_id}.tmp")
                waiting[temporary] = path
                with disk.create(temporary, mode) as file:
                    file.write(data)
                    disk.sync(file)
                disk.set_modified(temporary, dated)
            record(hashes)
            if keeps:
                replaced.keep(files, release_id)
            if transcript is None:
                disk.remove(files.transcript)
            for temporary, path in waiting.items():
                disk.replace(temporary, path)
            disk.sync_folder(files.folder)
            pending.publish(dated)
    finally:
        pending.discard()
        for temporary in waiting:
            disk.remove(temporary)
