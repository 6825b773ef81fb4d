"""Trees, and ensembles of them: bagging and AdaBoost."""
