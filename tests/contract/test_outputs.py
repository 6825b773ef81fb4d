import numpy as np

import empirisk as er


def test_single_precision_answers_stay_finite():
    X = np.arange(6, dtype=np.float32)[:, np.newaxis]
    machine = er.Ridge(C=1e6).fit(X, np.arange(6) * 1e45)
    assert machine.predict(X).dtype == np.float64
    assert np.isfinite(machine.predict(X)).all()
    assert er.Ridge().fit(X, np.arange(6.0)).predict(X).dtype == np.float32
