"""dpsynth: private synthetic copies of tables, with receipts."""

__version__ = "0.1.0"
