"""Behaviours of scikit-learn's estimators that hold here too, in our own words; see `tests.parity.test_behaviours`."""
