"""The way in: `dpsynth`, and `python -m dpsynth_cli`.

Importing the command line takes a moment. Nothing has been done then, so that Ctrl-C just ends it, with a
word instead of a traceback; from `cli.main.run` on it is met where it can be cleaned up after.
"""

import os
import signal
from types import FrameType

# Products of matrices are small here. In more threads they take longer beside other work, since threads wait
# busily, and may differ in their last bits from those of a machine with another number of cores.
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def _interrupted(number: int, frame: FrameType | None) -> None:
    os.write(2, b"Interrupted.\n")
    os._exit(128 + number)


def run() -> None:
    """Run the command line and exit with the contract's codes."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, and stays so
        signal.signal(signal.SIGINT, _interrupted)
    for name in BLAS_THREADS:  # before numpy is imported, which reads them
        os.environ.setdefault(name, "1")
    from dpsynth_cli.cli.main import run

    run()


if __name__ == "__main__":
    run()
