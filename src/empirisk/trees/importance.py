"""How much a fitted machine relies on each column: what it loses when the column is shuffled on rows held out."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike
from sklearn.inspection import permutation_importance

from empirisk.trees.arguments import check_count


class Importances:
    """Adds `importances`, unbiased because it looks at rows that the machine has not seen."""

    def importances(
        self,
        X: Any,
        y: ArrayLike,
        *,
        n_repeats: int = 10,
        scoring: Any = None,
        random_state: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> pl.DataFrame:
        """How much the score on held-out rows falls when one column is shuffled.

        A column of noise has an importance of zero up to chance, however many values it has; on the training rows,
        a machine that has learned the noise by heart would seem to need it.

        Parameters
        ----------
        X, y : table and target
            Rows that were not used in `fit`.
        n_repeats : int
            How often each column is shuffled.
        scoring : str, callable or None
            What to measure; None is the machine's own ``score`` (accuracy or R^2).
        random_state : int, RandomState or None
            Decides the shuffles.
        sample_weight : array, optional
            Weights of the rows.

        Returns
        -------
        polars.DataFrame
            Columns ``feature``, ``importance`` (mean fall of the score) and ``deviation`` (over the shuffles).
        """
        found = permutation_importance(
            self,
            X,
            y,
            n_repeats=check_count("n_repeats", n_repeats),
            scoring=scoring,
            random_state=random_state,
            sample_weight=None if sample_weight is None else np.asarray(sample_weight),
        )
        names = getattr(self, "feature_names_in_", [f"x{column}" for column in range(len(found.importances_mean))])
        return pl.DataFrame(
            {
                "feature": [str(name) for name in names],
                "importance": found.importances_mean,
                "deviation": found.importances_std,
            }
        )
