"""A typer app that opens a tantivy index and prints the ten best passages as JSON: the peer of `ragcli query`."""

import typer

app = typer.Typer()


@app.command()
def main(query: str, index: str) -> None:
    """Search the index for the words of the query."""
    import json

    import tantivy

    opened = tantivy.Index.open(index)
    searcher = opened.searcher()
    hits = searcher.search(opened.parse_query(query, ["text"]), 10).hits
    documents = [(score, searcher.doc(address)) for score, address in hits]
    print(json.dumps([{"id": found["id"][0], "score": score, "text": found["text"][0]} for score, found in documents]))


app()
