"""Importances of a forest, and their spread over its trees."""

from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

X, y = make_classification(300, 10, n_informative=3, n_redundant=0, shuffle=False, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=42)
forest = RandomForestClassifier(n_estimators=60, random_state=0)
forest.fit(X_train, y_train)
spread = [tree.feature_importances_.std() for tree in forest.estimators_]
result = {"important": sorted(forest.feature_importances_.argsort()[-3:]), "trees": len(spread)}
