"""Which reader a source gets: by its name, corrected by its content (spec I4). One module a format, loaded when needed.

This is the one table of extensions. A format that is known but has no reader yet, and a binary file, are a
`NotSupported` that says so. A file without a known extension that holds text is plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import cast

from ragcli.errors import NotSupported
from ragcli.read.decode import is_binary
from ragcli.types import Document, Problem, Reader, ReadRequest

EXTENSIONS = {
    "txt": "text", "text": "text", "log": "text", "md": "markdown", "markdown": "markdown", "mdx": "markdown",
    "html": "html", "htm": "html", "xhtml": "html", "json": "json", "jsonl": "jsonl", "ndjson": "jsonl",
    "csv": "csv", "tsv": "csv", "tab": "csv", "pdf": "pdf",
}  # fmt: skip

# Extension -> language of source code; `format` is "code", the language is metadata.
LANGUAGES = {
    "py": "python", "pyi": "python", "js": "javascript", "mjs": "javascript", "cjs": "javascript", "jsx": "javascript",
    "ts": "typescript", "tsx": "typescript", "go": "go", "rs": "rust", "java": "java", "kt": "kotlin", "kts": "kotlin",
    "scala": "scala", "c": "c", "h": "c", "cc": "cpp", "cpp": "cpp", "cxx": "cpp", "hh": "cpp", "hpp": "cpp",
    "cs": "csharp", "fs": "fsharp", "swift": "swift", "m": "objective-c", "rb": "ruby", "php": "php", "pl": "perl",
    "pm": "perl", "lua": "lua", "r": "r", "jl": "julia", "hs": "haskell", "ml": "ocaml", "mli": "ocaml", "ex": "elixir",
    "exs": "elixir", "erl": "erlang", "clj": "clojure", "dart": "dart", "zig": "zig", "nim": "nim", "sh": "shell",
    "bash": "shell", "zsh": "shell", "fish": "shell", "ps1": "powershell", "sql": "sql", "css": "css", "scss": "scss",
    "less": "less", "vue": "vue", "svelte": "svelte", "tf": "terraform", "proto": "protobuf", "graphql": "graphql",
    "cmake": "cmake", "gradle": "groovy", "groovy": "groovy", "vim": "vim", "el": "emacs-lisp", "lisp": "lisp",
    "scm": "scheme", "asm": "assembly", "s": "assembly", "yaml": "yaml", "yml": "yaml", "toml": "toml", "ini": "ini",
}  # fmt: skip
LANGUAGE_OF_NAME = {"makefile": "make", "dockerfile": "docker", "cmakelists.txt": "cmake", "jenkinsfile": "groovy"}

# Known, and not readable yet: an archive or a mark-up that is no plain text.
UNBUILT = {
    "docx": "DOCX", "pptx": "PPTX", "xlsx": "XLSX", "doc": "DOC", "ppt": "PPT", "xls": "XLS", "odt": "ODT",
    "ods": "ODS", "odp": "ODP", "rtf": "RTF", "epub": "EPUB", "eml": "EML", "mbox": "MBOX", "msg": "MSG",
    "ipynb": "IPYNB", "rst": "RST",
}  # fmt: skip

_HTML = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_PDF = b"%PDF-"


def extension_of(name: str) -> str:
    """The extension in lower case, without the dot; "" where there is none."""
    stem, dot, extension = name.rpartition(".")
    return extension.lower() if dot and stem else ""


def name_of(relative: str) -> str:
    """The last part of a path with `/`."""
    return relative.rpartition("/")[2]


def language_of(name: str) -> str:
    """The language that a file of this name is written in; "" where it is no source code."""
    return LANGUAGE_OF_NAME.get(name.lower()) or LANGUAGES.get(extension_of(name), "")


def format_of(request: ReadRequest) -> str:
    """The name of the module in this package that reads the source.

    Raises:
        NotSupported: the content is binary, or of a format that has no reader yet.
    """
    name = name_of(request.source.relative)
    extension = extension_of(name)
    if request.data.startswith(_PDF) or extension == "pdf":
        return "pdf"
    if extension in UNBUILT:
        raise NotSupported(f"{request.source.relative}: {UNBUILT[extension]} is not supported yet", kind="unsupported")
    if binary := is_binary(request.data):
        raise NotSupported(f"{request.source.relative}: {binary}, not text", kind="binary")
    if language_of(name):
        return "code"
    return EXTENSIONS.get(extension, "") or ("html" if _HTML.match(request.data[:512]) else "text")


def read(request: ReadRequest) -> Iterator[Document | Problem]:
    """The documents in a source, streamed; a `Problem` stands for a record of a collection that can't be read.

    Raises:
        NotSupported: nothing can be read from it: `kind` is "binary", "unsupported", "encrypted", "malformed",
            "no text".
    """
    module = import_module(f"ragcli.read.{format_of(request)}")
    yield from cast(Reader, module.read)(request)
