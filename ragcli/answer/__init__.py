"""Answers from sources: extracts, citations, their support by the sources, whether there is enough to answer from."""
