"""Utility and privacy yardsticks: a synthetic table against the real one.

For the steward: these functions see real rows, so what they return is confidential. What may be published
is paid for (`paid.py`). Rows are read as a release reads them, and compared by their codes.

compare      a synthetic file against the real one       utility   the same for the steward's audit
files        rows to judge; tables: tables to judge      written   how many decimals numbers are written with
families     tables that belong together                 broken    how often real rows break the spec's rules
paid         errors that may be published                lines     a judgement as lines for people

metrics/     the metrics, a file each                    verdict/  what holds and what does not, in words
report/      a release on one HTML page
"""
