"""A PostgreSQL server of the tests' own: started for them in a folder of its own, and removed after."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path


def missing() -> str | None:
    """Why there can be no server here; None if there can."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed: pip install 'dpsynth-cli[postgres]'"
    if _program("initdb") is None or _program("postgres") is None:
        return "no PostgreSQL server on this machine: apt-get install postgresql"
    if os.geteuid() == 0 and _user() is None:
        return "PostgreSQL does not run as root, and there is no other user for it"
    return None


def _program(name: str) -> str | None:
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name)


def _user() -> str | None:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    return None


class Server:
    """One server; `url` is by its socket, `network` by TCP."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="dpsynth-pg-"))
        self.folder.chmod(0o755)
        self.user = _user() if os.geteuid() == 0 else None
        if self.user:
            shutil.chown(self.folder, self.user)
        self._as = {"user": self.user, "extra_groups": []} if self.user else {}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._ran("initdb", "-D", str(self.folder / "data"), "-U", "dpsynth", "-A", "trust", "-E", "UTF8")
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def url(self, database: str) -> str:
        return f"postgresql://dpsynth@/{database}?host={self.folder}&port={self.port}"

    def network(self, database: str) -> str:
        return f"postgresql://dpsynth:secret@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        import psycopg

        words = [_program("postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder)]
        words += ["-p", str(self.port), "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=120"]
        words += ["-c", "recovery_init_sync_method=syncfs"]  # one sync instead of one for each of its files
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log, cwd="/", **self._as)
        for _ in range(600):
            try:
                psycopg.connect(self.url("postgres")).close()
                return
            except psycopg.OperationalError:
                time.sleep(0.1)
        raise RuntimeError((self.folder / "log").read_text())

    def database(self, name: str) -> str:
        """A new, empty database; its address."""
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as db:
            db.execute(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def emptied(self, name: str) -> str:
        """A database whose ledger is gone: faster than a new one."""
        import psycopg

        with psycopg.connect(self.url(name), autocommit=True) as db:
            db.execute("DROP SCHEMA IF EXISTS dpsynth CASCADE")
        return self.url(name)

    def kill(self) -> None:
        """kill -9, as a power cut would."""
        assert self.process is not None
        group = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True, check=False
        ).stdout.split()
        for pid in [str(self.process.pid), *group]:
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()
        (self.folder / "data/postmaster.pid").unlink(missing_ok=True)

    def close(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)  # fast shutdown
        self.process.wait()
        shutil.rmtree(self.folder)

    def _ran(self, *words: str) -> None:
        command = [_program(words[0]), *words[1:]]
        ran = subprocess.run(command, capture_output=True, cwd="/", check=False, **self._as)
        assert ran.returncode == 0, ran.stderr.decode()
