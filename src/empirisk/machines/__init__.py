"""Machines: the equation as scikit-learn estimators."""
