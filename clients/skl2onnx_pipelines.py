"""skl2onnx: pipelines that hold Empirisk's machines are converted once `register` was called."""

import numpy as np
import onnxruntime
import skl2onnx
from skl2onnx.common.data_types import DoubleTensorType
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import empirisk as er
from clients._rows import X, Y
from empirisk.exports.skl2onnx import register

register()
# Trees need ai.onnx.ml 5, which it does not write: er.export does.
MACHINES = [
    er.LogisticRegression(),
    er.SVM(),
    er.SVM(features=er.kernels.Gaussian()),
]
for machine in MACHINES:
    model = make_pipeline(StandardScaler(), machine).fit(X, Y)
    kinds = [("X", DoubleTensorType([None, 4]))]
    proto = skl2onnx.convert_sklearn(model, initial_types=kinds, target_opset={"": 20, "ai.onnx.ml": 3})
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    label, numbers = session.run(None, {"X": X})
    assert label.tolist() == model.predict(X).tolist()
    wanted = model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)
    np.testing.assert_allclose(numbers, wanted, atol=1e-12)
print(f"{len(MACHINES)} pipelines")
