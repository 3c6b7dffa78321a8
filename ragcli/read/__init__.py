"""From paths to documents: what to read (`walk`), its bytes (`load`), which reader (`formats`), one file a format."""
