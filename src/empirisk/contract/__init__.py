"""What every estimator shares: inputs, features, progress, clocks, members."""
