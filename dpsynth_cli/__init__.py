"""dpsynth: private synthetic copies of tables, with an exact privacy budget and receipts.

    import dpsynth_cli as dpsynth

    spec = dpsynth.load_spec("people.yaml")                    # or a dictionary with the same keys
    receipt = dpsynth.release(spec, frame, ledger="ledger.sqlite")
    receipt.table()                                            # the synthetic rows, as a data frame
    dpsynth.verify(receipt.files["audit"])
    dpsynth.sample(receipt.files["transcript"], 1000)          # more rows, at no cost
    dpsynth.evaluate(spec, receipt.table(), frame)             # confidential

The same readers, ledger and guarantees as on the command line. Names are imported when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Ledger", "Receipt", "Spec", "evaluate", "load_spec", "release", "sample", "verify"]

if TYPE_CHECKING:
    from dpsynth_cli.release.api import evaluate, load_spec, release, sample, verify
    from dpsynth_cli.release.synthesis import Receipt
    from dpsynth_cli.spec.spec import Spec
    from dpsynth_cli.trusted.ledger.ledger import Ledger

_HOME = {"Ledger": "trusted.ledger.ledger", "Receipt": "release.synthesis", "Spec": "spec.spec"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME.get(name, 'release.api')}"), name)
