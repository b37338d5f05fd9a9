"""Which variant of a template runs: candidates, what they would cost, and what was measured."""
