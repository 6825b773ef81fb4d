"""skops: machines are kept once their types, which all begin with ``empirisk.``, are trusted."""

import skops.io

import empirisk as er
from clients._rows import X, Y

MACHINES = [er.SVM(features=er.kernels.Gaussian()), er.ForestClassifier(5, random_state=0), er.LogisticRegression()]
for machine in MACHINES:
    data = skops.io.dumps(machine.fit(X, Y))
    types = skops.io.get_untrusted_types(data=data)
    assert all(name.startswith("empirisk.") for name in types), types
    assert skops.io.loads(data, trusted=types).predict(X).tolist() == machine.predict(X).tolist()
print(f"{len(MACHINES)} machines")
