"""f(x): the models that score a document."""
