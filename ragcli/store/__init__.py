"""Where chunks live and are searched: one file or folder a store, all behind one protocol (spec R40)."""
