"""`online`: continual release of a stream.

online     the mechanism: trees of blocks, snapshots; sparse counting's consistency step
schedule   when a stream is released and which blocks are measured: public numbers
"""

from dpsynth_cli.mechanisms.online.online import MECHANISM

__all__ = ["MECHANISM"]
