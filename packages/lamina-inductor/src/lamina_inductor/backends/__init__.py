"""Code generators, one package each, independent of each other."""
