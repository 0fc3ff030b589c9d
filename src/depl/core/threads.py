"""How OpenMP's threads wait for each other: asleep, not by busy-waiting.

By default they busy-wait. Where something else wants the cores, each then waits for one that is not
running: two fits side by side on two cores took four times as long as with threads that sleep. The
OpenMP library reads its settings once, when it is loaded, so this module is imported by
``depl/__init__`` before torch or scikit-learn bring theirs.
"""

from __future__ import annotations

import os
import sys

_VARIABLE = "OMP_WAIT_POLICY"

# Whether torch had loaded its OpenMP library before it could be told: ``neural.distributed`` has a
# remedy for that.
TOO_LATE = "torch" in sys.modules and _VARIABLE not in os.environ

os.environ.setdefault(_VARIABLE, "PASSIVE")
