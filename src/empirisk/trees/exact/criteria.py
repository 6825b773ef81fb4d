"""Criteria of a split: how pure a set of rows is.

Every criterion is written as the purity P of a set, the part of ``-weight * impurity`` that depends on how rows are
divided; a split gains  P(left) + P(right) - P(node) >= 0, so children count by their size.

============ ========================================== =======================================
criterion    impurity of a set with class shares p      purity P, with class weights s, W = sum
============ ========================================== =======================================
gini         sum_k p_k (1 - p_k)                        sum_k s_k^2 / W
entropy      - sum_k p_k log2 p_k                       sum_k s_k log2 (s_k / W)
error        1 - max_k p_k                              max_k s_k
squared      mean of (y - mean)^2, over outputs         sum_k t_k^2 / W,  t = sum of w y
absolute     mean of |y - median|                       - sum of w |y - median|
============ ========================================== =======================================
"""

from difflib import get_close_matches

import numpy as np

from empirisk.errors import EmpiriskError
from empirisk.linalg.compiled import plain

GINI, ENTROPY, ERROR, SQUARED, ABSOLUTE = range(5)
CLASSIFICATION = {"gini": GINI, "entropy": ENTROPY, "error": ERROR}
REGRESSION = {"squared": SQUARED, "absolute": ABSOLUTE}


def find(criterion: str, table: dict[str, int]) -> int:
    """The code of a criterion in compiled code, or a sentence that names the choices.

    >>> find("entropy", CLASSIFICATION)
    1
    """
    if criterion in table:
        return table[criterion]
    close = get_close_matches(str(criterion), table, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"choose one of {sorted(table)}."
    raise EmpiriskError(f"criterion={criterion!r} is not known; {hint}")


@plain
def purity(criterion, sums):
    """P of a set from its weight, which is positive, and its sums (see the table above)."""
    total, weight = 0.0, sums[0]
    for k in range(1, len(sums)):
        amount = sums[k]
        if criterion == ENTROPY:
            total += amount * np.log2(amount / weight) if amount > 0.0 else 0.0
        elif criterion == ERROR:
            total = amount if amount > total else total
        else:
            total += amount * amount
    return total if criterion == ENTROPY or criterion == ERROR else total / weight  # noqa: SIM109 - a tuple takes longer to compile
