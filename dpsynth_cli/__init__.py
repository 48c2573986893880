"""dpsynth: private synthetic copies of tables, with receipts. For programs: `dpsynth_cli.api`."""

__version__ = "0.1.0"
