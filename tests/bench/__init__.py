"""Benches of ours against the tools that users would take instead. Run by `make bench-…`, never by pytest."""
