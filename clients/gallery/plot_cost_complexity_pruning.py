"""Trees along the path of cost-complexity pruning."""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
path = DecisionTreeClassifier(random_state=0).cost_complexity_pruning_path(X_train, y_train)
ccp_alphas, impurities = path.ccp_alphas, path.impurities
trees = [DecisionTreeClassifier(random_state=0, ccp_alpha=alpha).fit(X_train, y_train) for alpha in ccp_alphas[::3]]
scores = [tree.score(X_test, y_test) for tree in trees]
leaves = [tree.get_n_leaves() for tree in trees]
result = {"falling": leaves == sorted(leaves)[::-1], "depth": trees[-1].get_depth() <= 1, "best": max(scores) > 0.9}
