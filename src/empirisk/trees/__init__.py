"""Trees, and ensembles of them: bagging, forests, AdaBoost and gradient boosting."""
