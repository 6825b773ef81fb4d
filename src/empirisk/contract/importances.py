"""How much a fitted machine relies on each column: what it loses when the column is shuffled on rows held out."""

from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.metrics import check_scoring

from empirisk.contract.arguments import check_count
from empirisk.contract.inputs import generator
from empirisk.contract.members import shuffled

if TYPE_CHECKING:
    import polars as pl


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
    ) -> "pl.DataFrame":
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
        import polars as pl  # tables alone need it, and it takes a while to load

        check_count("n_repeats", n_repeats)
        random = generator(random_state)
        if not nw.dependencies.is_into_dataframe(X):
            X = X.tocsr() if issparse(X) else np.asarray(X)
        measure = check_scoring(self, scoring=scoring)
        weights = {} if sample_weight is None else {"sample_weight": np.asarray(sample_weight)}
        before = measure(self, X, y, **weights)
        falls = [
            [
                before - measure(self, shuffled(X, column, random.permutation(X.shape[0])), y, **weights)
                for _ in range(n_repeats)
            ]
            for column in range(X.shape[1])
        ]
        names = getattr(self, "feature_names_in_", [f"x{column}" for column in range(X.shape[1])])
        return pl.DataFrame(
            {
                "feature": [str(name) for name in names],
                "importance": np.mean(falls, axis=1),
                "deviation": np.std(falls, axis=1),
            }
        )
