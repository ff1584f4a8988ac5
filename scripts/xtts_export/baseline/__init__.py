"""PyTorch's own training of the built-in models: what xtts-host is compared with."""
