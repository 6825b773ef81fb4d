"""What regressors of a loss share: predictions by its inverse link, and the score that suits it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from empirisk import losses
from empirisk.contract.elsewhere import blockwise
from empirisk.contract.inputs import check_weights
from empirisk.contract.outputs import rounded
from empirisk.errors import EmpiriskError
from empirisk.linalg.foreign import received
from empirisk.losses.base import Loss
from empirisk.validation import in_memory_of_numpy


class PredictsNumbers(RegressorMixin):
    """From f(x) to predictions and scores; a list of losses holds one for each target."""

    loss: Any

    def raw_predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """f(x) of each row: the prediction itself, or the logarithm of it for deviances such as "poisson"."""
        raise NotImplementedError

    def _losses(self) -> list[Loss]:
        given = self.loss if isinstance(self.loss, (list, tuple)) else [self.loss]
        return [losses.find(loss) for loss in given]

    @property
    def scoring_loss(self) -> Loss | None:
        """The loss that `score` measures by; None where that is R^2."""
        found = self._losses()
        return found[0] if len(found) == 1 and found[0].scored else None

    def _respond(self, f: NDArray[np.float64]) -> NDArray[np.float64]:
        """What f stands for, one loss for all columns or one for each."""
        found, targets = self._losses(), 1 if f.ndim == 1 else f.shape[1]
        if len(found) == 1:
            return found[0].inverse_link(f)
        if len(found) != targets:
            raise EmpiriskError(f"loss holds {len(found)} losses, but {targets} targets were learned; give one each.")
        return np.column_stack([loss.inverse_link(column) for loss, column in zip(found, f.T, strict=True)])

    @blockwise
    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """The prediction for each row: f(x), or exp(f(x)), the mean, for deviances such as "poisson"."""
        f = self.raw_predict(X)
        answers = self._respond(f)
        return rounded(answers) if f.dtype == np.float32 else answers

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R^2; for deviances and quantiles D^2, the share of the loss of the best constant that is explained.

        Parameters
        ----------
        X, y : arrays
            Rows and their targets; the score of several targets is the mean of theirs.
        sample_weight : array of n, optional
            Weight of each row.
        """
        X, y = received(X), in_memory_of_numpy(y)
        loss = self.scoring_loss
        if loss is None:
            return super().score(X, y, sample_weight)
        f = self.raw_predict(X)
        targets, weights = np.asarray(y, dtype=np.float64).reshape(f.shape), check_weights(sample_weight, len(f))
        return loss.explained(targets, f, weights)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        given = self.loss if isinstance(self.loss, (list, tuple)) else [self.loss]
        # A name that is not known is refused by `fit`, not here.
        known = [losses.NAMES.get(loss) if isinstance(loss, str) else loss for loss in given]
        tags.target_tags.positive_only = any(getattr(loss, "positive", False) for loss in known)
        return tags
