"""Utility and privacy yardsticks: a synthetic table against the real one.

For the steward: these functions see real rows, so what they return is confidential. What may be published
is paid for (`paid.py`). Rows are read as a release reads them, and compared by their codes.
"""
