"""ragcli: ingest a folder of documents, search it, ask it."""
