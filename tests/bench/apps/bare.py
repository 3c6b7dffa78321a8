"""The barest typer app: prints its argument. What every command line of this kind costs before it does anything."""

import typer

app = typer.Typer()


@app.command()
def main(query: str) -> None:
    """Print the query."""
    print(query)


app()
