"""A typer app that opens an SQLite FTS5 table and prints the ten best passages as JSON."""

import typer

app = typer.Typer()


@app.command()
def main(query: str, index: str) -> None:
    """Search the table for any of the words of the query."""
    import json
    import sqlite3

    any_word = " OR ".join(f'"{word}"' for word in query.split())
    rows = sqlite3.connect(index).execute(
        "SELECT rowid, rank, text FROM passages WHERE passages MATCH ? ORDER BY rank LIMIT 10", (any_word,)
    )
    print(json.dumps([{"id": row, "score": -rank, "text": text} for row, rank, text in rows]))


app()
