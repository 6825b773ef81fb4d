"""A vote of boosting, a forest and least squares."""

from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor, VotingRegressor
from sklearn.linear_model import LinearRegression

X, y = load_diabetes(return_X_y=True)
reg1 = GradientBoostingRegressor(random_state=1)
reg2 = RandomForestRegressor(random_state=1)
reg3 = LinearRegression()
reg1.fit(X, y)
reg2.fit(X, y)
reg3.fit(X, y)
ereg = VotingRegressor([("gb", reg1), ("rf", reg2), ("lr", reg3)])
ereg.fit(X, y)
pred = [machine.predict(X[:20]) for machine in (reg1, reg2, reg3, ereg)]
result = {"mean": bool(abs(sum(pred[:3]) / 3 - pred[3]).max() < 1e-6)}
