"""Losses and penalties with corners: interior point, envelopes, crossover."""
