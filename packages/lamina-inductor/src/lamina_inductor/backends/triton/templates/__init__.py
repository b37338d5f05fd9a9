"""Kernels of a shape of their own, into which loop IR is printed: products, attention, convolutions."""
