"""The simulated disk does what the real one does, as long as nothing happens to it; and nothing of the
protocol goes around it."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dpsynth_cli import disk
from tests.conftest import ROOT
from tests.simulator.machine import NAMES, Machine
from tests.simulator.scheduler import Scheduler

PROTOCOL = (
    "hashing.py", "release/synthesis.py", "release/table.py", "release/files/publish.py",
    "release/files/replaced.py", "release/files/write.py", "release/record/again.py",
    "release/record/journal.py", "release/record/transcript.py", "release/record/unfinished.py",
    "release/stream/place.py", "release/stream/published.py", "release/stream/snapshot.py",
    "release/stream/start.py", "release/stream/status.py", "release/stream/step.py",
    "release/stream/stream.py", "trusted/ledger/chain.py", "trusted/ledger/copies.py",
    "trusted/ledger/ledger.py", "trusted/ledger/reading.py", "trusted/stream/state.py",
)  # fmt: skip
# Names of functions and methods that reach a file, a lock, the clock or a process.
REACHES = {
    "open", "fdopen", "fsync", "rename", "link", "unlink", "exists", "is_dir", "is_file", "iterdir",
    "listdir", "walk", "glob", "rglob", "stat", "lstat", "fstat", "utime", "touch", "mkdir", "makedirs",
    "rmdir", "rmtree", "copy2", "copyfile", "read_bytes", "read_text", "write_bytes", "write_text", "flock",
    "getpid", "fork", "system", "Popen", "utcnow",
}  # fmt: skip
ALLOWED = {
    ("release/files/write.py", "os.open"),  # standard output that nobody reads
    ("trusted/ledger/reading.py", "self.place.exists"),  # the seam of ledgers
    ("trusted/ledger/ledger.py", "self.place.exists"),
    ("trusted/ledger/reading.py", "self.exists"),
}


@pytest.mark.parametrize("name", PROTOCOL)
def test_nothing_of_the_protocol_goes_around_the_seam(name):
    tree = ast.parse((ROOT / "dpsynth_cli" / name).read_text())
    around = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "dpsynth_cli.disk":
            around.append("from dpsynth_cli.disk import")  # it would keep the real one
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        last = called.rsplit(".")[-1]
        clock = called in ("time.time", "time.sleep", "datetime.now", "os.replace", "shutil.move")
        reaches = last in REACHES and not called.startswith(("disk.", "ipc."))
        if (reaches or clock) and (name, called) not in ALLOWED:
            around.append(f"line {node.lineno}: {called}")
    assert around == []


def test_the_machine_has_every_function_of_the_seam():
    own = {
        name
        for name, what in vars(disk).items()
        if callable(what) and getattr(what, "__module__", "") == disk.__name__ and not name.startswith("_")
    }
    assert own - {"make_folder", "today"} == set(NAMES)  # these two are made of others


def steps(luck: random.Random, count: int) -> list[tuple[str, ...]]:
    names = ("a", "b", "folder/a", "folder/b", "new/c")
    kinds = [
        "create",
        "new",
        "append",
        "reopen",
        "read",
        "replace",
        "link",
        "copy",
        "remove",
        "exists",
        "names",
        "make",
    ]
    return [(luck.choice(kinds), luck.choice(names), luck.choice(names), str(i)) for i in range(count)]


def done(system: Any, folder: Path, step: tuple[str, ...]) -> object:
    """What a step gives, or how it fails."""
    kind, one, other, text = step
    path, target = folder / one, folder / other
    try:
        if kind in ("create", "new", "append", "reopen"):
            opened: Callable[..., Any] = {
                "create": system.create, "new": lambda path: system.create(path, new=True),
                "append": system.append, "reopen": system.reopen,
            }[kind]  # fmt: skip
            with opened(path) as file:
                file.write(text.encode())
                system.sync(file)
                return system.is_at(file, path)
        if kind == "make":
            return system.add_folder(path.parent)
        if kind == "names":
            return [name for name in system.names(path.parent) if "." in name or len(name) == 1]
        if kind in ("replace", "link", "copy"):
            return getattr(system, kind)(path, target)
        return getattr(system, kind)(path)
    except OSError as error:
        return type(error).__name__


@pytest.mark.parametrize("seed", range(40))
def test_the_simulated_disk_is_like_the_real_one(seed, tmp_path):
    machine = Machine(Scheduler(), ["/", "/sim", "/sim/folder"])
    (tmp_path / "folder").mkdir()
    real = SimpleNamespace(**{name: getattr(disk, name) for name in NAMES})
    luck = random.Random(seed)
    for step in steps(luck, 60):
        there = done(real, tmp_path, step)
        if there != "SameFileError":  # a copy of a file onto itself
            assert done(machine, Path("/sim"), step) == there, step


def test_what_a_power_cut_leaves():
    """Synced bytes under a synced name stay; of the rest every part has been seen to stay, and to go."""
    found = set()
    for seed in range(200):
        machine = Machine(Scheduler(), ["/", "/sim"])
        with machine.create(Path("/sim/kept")) as file:
            file.write(b"kept")
            machine.sync(file)
        with machine.create(Path("/sim/new")) as file:
            file.write(b"synced")
            machine.sync(file)
        machine.sync_folder(Path("/sim"))
        with machine.reopen(Path("/sim/new")) as file:
            file.seek(6)
            file.write(b"!")
            file.flush()
            file.write(b"?")
        machine.replace(Path("/sim/new"), Path("/sim/newer"))
        machine.power_cut(seed)
        assert machine.read(Path("/sim/kept")) == b"kept"
        (name,) = [name for name in machine.names(Path("/sim")) if name != "kept"]
        found.add((name, machine.read(Path(f"/sim/{name}"))))
    tails = (b"synced", b"synced!", b"synced!?", b"synced\0", b"synced\0?")
    assert found >= {(name, tail) for name in ("new", "newer") for tail in tails}
    assert {data for _, data in found} == set(tails)
