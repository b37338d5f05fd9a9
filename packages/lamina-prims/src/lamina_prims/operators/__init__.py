"""One module per family of operators."""
