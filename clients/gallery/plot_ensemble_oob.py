"""The error out of bag of growing forests."""

from collections import OrderedDict

from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

X, y = make_classification(n_samples=500, n_features=25, n_clusters_per_class=1, n_informative=15, random_state=123)
ensemble_clfs = [
    ("sqrt", RandomForestClassifier(warm_start=True, oob_score=True, max_features="sqrt", random_state=123)),
    ("log2", RandomForestClassifier(warm_start=True, max_features="log2", oob_score=True, random_state=123)),
    ("all", RandomForestClassifier(warm_start=True, max_features=None, oob_score=True, random_state=123)),
]
error_rate = OrderedDict((label, []) for label, _ in ensemble_clfs)
for label, clf in ensemble_clfs:
    for i in range(15, 151, 45):
        clf.set_params(n_estimators=i)
        clf.fit(X, y)
        error_rate[label].append((i, 1 - clf.oob_score_))
result = {"trees": [len(clf.estimators_) for _, clf in ensemble_clfs], "falls": error_rate["sqrt"][-1][1] < 0.15}
