"""DiSMEC (Babbar and Schölkopf, WSDM 2017) as a configuration of depl's own SVM.

One-vs-all squared hinge with L2 regularisation and C = 1, solved label by label, and weights below
0.01 dropped: that *is* the algorithm; distributing labels over machines changes nothing of it.
depl's defaults differ in C, in the larger threshold and in raising rare labels.
"""

from __future__ import annotations

import depl


def dismec(*, C: float = 1.0, cull: float = 0.01, tol: float = 1e-3) -> depl.OneVsAllSVM:
    """The SVM with the published settings."""
    return depl.OneVsAllSVM(loss="squared_hinge", C=C, cull=cull, rare_bonus=0.0, tol=tol)
