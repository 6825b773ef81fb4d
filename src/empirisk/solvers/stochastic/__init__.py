"""Random samples: SGD, the perceptron, doubly stochastic gradients."""
