"""Models: the catalogue of what there is, and how its files get here."""
