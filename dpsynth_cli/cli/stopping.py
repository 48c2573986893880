"""Ctrl-C and SIGTERM stop a command, wherever they find it.

A signal raises KeyboardInterrupt or SystemExit in whatever runs at the moment. Where that is the clean-up of
an object, Python prints a traceback, forgets the exception, and the command would go on: then it is raised
again a moment later, outside. Nothing has met it in between, so no clean-up of ours is cut short.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

MOMENT = 0.01  # seconds


class Terminated(SystemExit):
    """SIGTERM came; no command ends by itself with this."""


def watch() -> None:
    """Turn SIGTERM into Terminated(143), Ctrl-C into KeyboardInterrupt, and forget no signal."""
    signal.signal(signal.SIGTERM, _terminated)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.unraisablehook is sys.__unraisablehook__ and hasattr(signal, "setitimer"):
        sys.unraisablehook = _forgotten


def _terminated(number: int, frame: FrameType | None) -> None:
    raise Terminated(128 + number)


def _forgotten(lost: UnraisableHookArgs) -> None:
    """Called for an exception that Python cannot raise. Its text is never shown: it may quote a cell."""
    stop = lost.exc_value
    if not isinstance(stop, (KeyboardInterrupt, SystemExit)):
        print(f"Warning: a clean-up failed: {lost.exc_type.__name__}.", file=sys.stderr)
        return

    def again(number: int, frame: FrameType | None) -> None:
        raise stop

    signal.signal(signal.SIGALRM, again)
    signal.setitimer(signal.ITIMER_REAL, MOMENT)
