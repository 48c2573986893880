"""Where a ledger is: a file, or a PostgreSQL database that many machines share."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dpsynth_cli.trusted.ledger.chain import Place
from dpsynth_cli.trusted.ledger.sqlite_file import SqliteFile

SERVERS = ("postgresql://", "postgres://")


def ledger_path(option: str | None = None) -> Path | str:
    """Where the ledger is: the option, else $DPSYNTH_LEDGER, else the user's data folder."""
    named = option or os.environ.get("DPSYNTH_LEDGER")
    if named:
        return named if named.startswith(SERVERS) else Path(named).expanduser()
    return data_folder() / "ledger.sqlite"


def data_folder() -> Path:
    """The user's own, for programs."""
    if os.environ.get("XDG_DATA_HOME"):
        folder = Path(os.environ["XDG_DATA_HOME"])
    elif sys.platform == "darwin":
        folder = Path.home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        folder = Path.home() / ".local" / "share"
    return folder / "dpsynth"


def mirror_path() -> Path | None:
    """The copy that every entry is added to, if one is wanted: $DPSYNTH_LEDGER_MIRROR."""
    named = os.environ.get("DPSYNTH_LEDGER_MIRROR")
    return Path(named).expanduser() if named else None


def place_at(path: str | Path) -> Place:
    if isinstance(path, str) and path.startswith(SERVERS):
        from dpsynth_cli.trusted.ledger.postgres import Server

        return Server(path, data_folder())
    return SqliteFile(Path(path))
