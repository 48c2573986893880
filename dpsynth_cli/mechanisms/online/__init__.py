"""`online`: continual release of a stream.

online     the mechanism: what a release asks, snapshots; sparse counting's consistency step
guarantee  bounds on W1: Theorem 5.1, and by the counts of a snapshot
tables, columns    more than five columns: the model of `joint` from running counts
fits       which tables and parameters it takes
schedule   when a stream is released: public numbers
"""

from dpsynth_cli.mechanisms.online.online import MECHANISM

__all__ = ["MECHANISM"]
