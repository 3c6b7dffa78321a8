"""Where chunks live and are searched: one file or folder a store. SQLite is the one there is."""
