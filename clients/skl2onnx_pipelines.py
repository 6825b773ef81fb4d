"""skl2onnx: pipelines that hold Empirisk's machines are converted once `register` was called."""

import numpy as np
import onnxruntime
import skl2onnx
from skl2onnx.common.data_types import DoubleTensorType
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import empirisk as er
from clients._rows import T, X, Y
from empirisk.errors import Unsuitable
from empirisk.exports.skl2onnx import register

# A vote by hands has no probabilities, which skl2onnx asks all classifiers for: it is refused by a sentence.
WITHOUT = {"VoteClassifier"}
for name in register():
    kind = getattr(er, name)
    few = {"n_estimators": 5} if "n_estimators" in kind().get_params() else {}
    machine = kind(**few)
    model = make_pipeline(StandardScaler(), machine).fit(X, T if is_regressor(machine) else Y)
    kinds, versions = [("X", DoubleTensorType([None, 4]))], {"": 20, "ai.onnx.ml": 3}
    try:
        proto = skl2onnx.convert_sklearn(model, initial_types=kinds, target_opset=versions)
    except Unsuitable:
        assert name in WITHOUT
        continue
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    answer, *scores = session.run(None, {"X": X})
    wanted = model.predict(X) if hasattr(model, "predict") else model.transform(X)
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(answer.reshape(wanted.shape), wanted, rtol=1e-9, atol=1e-12)
    else:
        assert answer.tolist() == wanted.tolist(), name
    if scores and is_classifier(machine):
        told = model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)
        np.testing.assert_allclose(scores[0], told, rtol=1e-9, atol=1e-12)
print(f"{len(register())} machines, {len(WITHOUT)} of them refused")
