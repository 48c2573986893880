"""Commands that meet with an accident: killed, short of disk or memory, without rights.

    python -m tests.whole.stricken < jobs.json > outcomes.json

A job is {"folder": ..., "words": [...], "fault": NAME, "at": NUMBER}, and may have "after": the name of a
function from whose first return on steps are counted, those of context managers too. Each runs in its folder,
with the ledger there, in a forked child of one process that has everything imported.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import redirect_stdout, suppress
from pathlib import Path

from tests.conftest import ROOT

PACKAGE = str(ROOT / "dpsynth_cli")
STRUCK = "(a signal)\n"
LONGEST = 120  # seconds, after which a job hangs


def struck(jobs: list[dict]) -> list[tuple[int, str]]:
    """How each job ended, as `subprocess` tells it (1000: it hung), and all that it printed."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.whole.stricken"],
        input=json.dumps(jobs).encode(),
        capture_output=True,
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert ran.returncode == 0, ran.stderr.decode()
    return [tuple(each) for each in json.loads(ran.stdout)]


def calls_until(at: int, number: int, after: str = "") -> None:
    """Send this process a signal at its so-many-th call or return inside the package, or after a function."""
    left, begun = at, not after

    def count(frame, event, arg):
        nonlocal left, begun
        own = frame.f_code.co_filename.startswith(PACKAGE)
        if begun and (own or (after and frame.f_code.co_filename == contextlib.__file__)):
            left -= 1
            if left == 0:
                os.write(2, f"at {event} of {frame.f_code.co_name} {STRUCK}".encode())
                os.kill(os.getpid(), number)
        begun = begun or (own and event == "return" and frame.f_code.co_name == after)

    sys.setprofile(count)


def counting() -> None:
    """Print at the end how many calls and returns there were."""
    seen = 0

    def count(frame, event, arg):
        nonlocal seen
        seen += frame.f_code.co_filename.startswith(PACKAGE)

    sys.setprofile(count)
    atexit.register(lambda: print(f"calls: {seen}"))


def strike(fault: str, at: int, after: str = "") -> None:
    if fault == "kill":
        calls_until(at, signal.SIGKILL)
    elif fault == "term":
        calls_until(at, signal.SIGTERM, after)
    elif fault == "count":
        counting()
    elif fault == "disk":  # no file may grow beyond so many bytes: the kernel refuses the write
        resource.setrlimit(resource.RLIMIT_FSIZE, (at, at))
    elif fault == "memory":  # so many bytes more than now
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + at
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    elif fault == "rights" and os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)


def child(job: dict) -> None:
    from dpsynth_cli.cli.main import run

    os.chdir(job["folder"])
    os.environ["DPSYNTH_LEDGER"] = str(Path(job["folder"]) / "ledger.sqlite")
    sys.argv = ["dpsynth", *job["words"]]
    strike(job["fault"], job["at"], job.get("after", ""))
    run()


def main() -> None:
    jobs = json.load(sys.stdin)
    warm_up(Path(jobs[0]["folder"]))
    json.dump([outcome(job) for job in jobs], sys.stdout)


def warm_up(folder: Path) -> None:
    """A release without accident: whatever is imported late is imported now."""
    with tempfile.TemporaryDirectory() as elsewhere, redirect_stdout(sys.stderr):
        for name in ("people.csv", "spec.yaml"):
            shutil.copy(folder / name, elsewhere)
        with suppress(SystemExit):
            child({"folder": elsewhere, "words": ["release", "spec.yaml"], "fault": "none", "at": 0})
        os.chdir("/")


def outcome(job: dict) -> tuple[int, str]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 70
        os.dup2(writer, 1)
        os.dup2(writer, 2)
        try:
            child(job)
        except SystemExit as stop:
            code = int(stop.code or 0)
        finally:
            sys.setprofile(None)
            atexit._run_exitfuncs()
            sys.stdout.flush()
            os._exit(code)
    os.close(writer)
    timer = threading.Timer(LONGEST, os.kill, (pid, signal.SIGALRM))
    timer.start()
    with open(reader, errors="replace") as pipe:
        said = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    timer.cancel()
    return (1000 if code == -signal.SIGALRM else code), said


if __name__ == "__main__":
    main()
