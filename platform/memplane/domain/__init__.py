"""Pure rules: what a memory is, who may see it, how it is written, ranked and told."""
