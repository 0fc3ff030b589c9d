"""OpenMP threads sleep while they wait for each other, and do not busy-wait.

By default they busy-wait. Where other programs need the cores, each then waits for one that is not
running: two fits side by side on two cores took four times as long as with threads that sleep. The
OpenMP library reads its settings once, when it is loaded, so this module is imported by
``depl/__init__`` before torch or scikit-learn load theirs.
"""

from __future__ import annotations

import os
import sys

_VARIABLE = "OMP_WAIT_POLICY"

# Whether torch had loaded its OpenMP library before this could be set: ``neural.distributed`` has a
# remedy for that.
TOO_LATE = "torch" in sys.modules and _VARIABLE not in os.environ

os.environ.setdefault(_VARIABLE, "PASSIVE")
