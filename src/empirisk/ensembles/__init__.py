"""Ensembles of any machine: bagging, AdaBoost, votes."""
