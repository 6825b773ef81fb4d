"""The slot ``features=``: data through the feature map, validated on the way in."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from empirisk.errors import EmpiriskError

FORMATS = ("csr", "csc")
FLOATS = (np.float64, np.float32)


class MapsFeatures:
    """A machine with a slot ``features``: None, or a transformer that is cloned and fitted inside."""

    features: Any

    def _fit_map(self, X, y, **target) -> tuple[Any, NDArray]:
        """Validated data after the fitted feature map, and validated targets."""
        if self.features is None:
            return validate_data(self, X, y, accept_sparse=FORMATS, dtype=FLOATS, **target)
        if not hasattr(self.features, "transform"):
            raise EmpiriskError(
                f"features={self.features!r} is not a feature map; give None or a transformer with fit and transform."
            )
        y = validate_data(self, X="no_validation", y=y, **target)
        self.features_ = clone(self.features).fit(X, y)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.features_, name):
                setattr(self, name, getattr(self.features_, name))
        mapped = self._mapped(X)
        check_consistent_length(mapped, y)
        return mapped, y

    def _mapped(self, X) -> Any:
        """Validated data after the fitted feature map."""
        if self.features is None:
            return validate_data(self, X, accept_sparse=FORMATS, dtype=FLOATS, reset=False)
        return check_array(self.features_.transform(X), accept_sparse=FORMATS, dtype=FLOATS, input_name="features(X)")
