"""What every method shares: the estimator, its parameters, the registry of methods, options of a fit."""
