"""How good a model is: splits and metrics. They look at private data and are for the data's owner."""
