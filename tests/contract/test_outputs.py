import numpy as np
import pandas as pd

import empirisk as er


def test_single_precision_answers_stay_finite():
    X = np.arange(6, dtype=np.float32)[:, np.newaxis]
    machine = er.Ridge(C=1e6).fit(X, np.arange(6) * 1e45)
    assert machine.predict(X).dtype == np.float64
    assert np.isfinite(machine.predict(X)).all()
    assert er.Ridge().fit(X, np.arange(6.0)).predict(X).dtype == np.float32


def test_frames_are_answered_in_their_precision():
    """Frames in float32 were answered in float64: other scores than those of an array, and other choices."""
    X = np.arange(6, dtype=np.float32)[:, np.newaxis]
    for kind in (np.float32, np.float64):
        frame = pd.DataFrame(X.astype(kind), columns=["number"])
        assert er.Ridge().fit(frame, np.arange(6.0)).predict(frame).dtype == kind
    mixed = frame.assign(other=frame["number"].astype(np.float32))
    assert er.Ridge().fit(mixed, np.arange(6.0)).predict(mixed).dtype == np.float64
