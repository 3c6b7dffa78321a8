from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ragcli.errors import UsageError
from ragcli.options import IngestSettings
from ragcli.read.walk import local_path, walk
from ragcli.types import Problem, Source

Tree = Callable[..., None]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Writes files below tmp_path: name -> content."""

    def write(**files: str) -> None:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    return write


def walked(*paths: object, index_folder: Path | None = None, **settings: object) -> tuple[list[Source], list[Problem]]:
    problems: list[Problem] = []
    sources = walk(
        [str(path) for path in paths],
        IngestSettings(**settings),  # type: ignore[arg-type]
        report=problems.append,
        index_folder=index_folder,
    )
    return list(sources), problems


def names(*paths: object, **settings: object) -> list[str]:
    return [source.relative for source in walked(*paths, **settings)[0]]  # type: ignore[arg-type]


def skips(root: Path, *paths: object, **settings: object) -> dict[str, str]:
    problems = walked(*(paths or (root,)), **settings)[1]  # type: ignore[arg-type]
    return {os.path.relpath(problem.path, root): problem.kind for problem in problems}


@pytest.mark.spec("I1", "I6")
def test_a_folder_gives_its_files_sorted_with_slashes(tree: Tree, tmp_path: Path) -> None:
    tree(**{"b.md": "bb", "a.md": "", "z/c.md": "", "k/y.md": "", "k/a/x.md": ""})
    sources, problems = walked(tmp_path)
    assert [source.relative for source in sources] == ["a.md", "b.md", "k/y.md", "k/a/x.md", "z/c.md"]
    assert problems == []
    b = sources[1]
    status = (tmp_path / "b.md").stat()
    assert b == Source(
        root=str(tmp_path.resolve()),
        relative="b.md",
        location=f"{tmp_path.resolve()}/b.md",
        size=2,
        mtime_ns=status.st_mtime_ns,
    )


@pytest.mark.spec("I6")
def test_the_root_of_a_file_is_its_folder(tree: Tree, tmp_path: Path) -> None:
    tree(**{"d/a.md": ""})
    (source,), _ = walked(tmp_path / "d/a.md")
    assert (source.root, source.relative) == (f"{tmp_path.resolve()}/d", "a.md")


@pytest.mark.spec("I1")
def test_relative_paths_and_the_working_folder(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(**{"d/a.md": "", "b.md": ""})
    monkeypatch.chdir(tmp_path)
    assert names(".") == ["b.md", "d/a.md"]
    assert names("b.md", "d/") == ["b.md", "a.md"]
    assert [source.root for source in walked("b.md")[0]] == [str(tmp_path.resolve())]


@pytest.mark.spec("I1")
def test_standard_input_is_a_source() -> None:
    (source,), _ = walked("-")
    assert (source.location, source.relative) == ("-", "-")


@pytest.mark.spec("I1")
def test_globs_that_no_shell_expanded(tree: Tree, tmp_path: Path) -> None:
    tree(**{"d/a.md": "", "d/b.txt": "", "d/s/c.md": "", "d/.h.md": "", "d/s/.gitignore": "c2.md", "d/s/c2.md": ""})
    assert names(f"{tmp_path}/d/*.md") == ["a.md"]
    assert names(f"{tmp_path}/d/**/*.md") == ["a.md", "s/c.md"]
    assert names(f"{tmp_path}/d/s*") == ["s/c.md"]
    (source,), _ = walked(f"{tmp_path}/d/[b]*")
    assert (source.root, source.relative) == (f"{tmp_path.resolve()}/d", "b.txt")
    with pytest.raises(UsageError, match=r"\*\.rst"):
        walked(f"{tmp_path}/d/*.rst")


@pytest.mark.spec("I1")
def test_a_file_whose_name_looks_like_a_glob_is_a_file(tree: Tree, tmp_path: Path) -> None:
    tree(**{"a [x] & z.md": "", "a x & z.md": ""})
    assert names(tmp_path / "a [x] & z.md") == ["a [x] & z.md"]


@pytest.mark.spec("I1")
def test_each_file_once_below_the_first_path_that_reaches_it(tree: Tree, tmp_path: Path) -> None:
    tree(**{"d/a.md": "", "d/s/b.md": ""})
    assert names(tmp_path / "d", tmp_path / "d/s", tmp_path / "d/a.md") == ["a.md", "s/b.md"]


@pytest.mark.spec("I2")
def test_ignore_files_as_git_reads_them(tree: Tree, tmp_path: Path) -> None:
    tree(
        **{
            ".gitignore": "*.log\n!keep.log\n/top.md\nbuild/\n# comment\nsub/deep/*.txt\n",
            "a.log": "", "keep.log": "", "top.md": "", "sub/top.md": "", "build/x.md": "", "sub/build/y.md": "",
            "sub/deep/t.txt": "", "sub/deep/t.md": "",
            "sub/.gitignore": "!a.log\nonly-here.md\n", "sub/a.log": "", "sub/only-here.md": "", "only-here.md": "",
        }
    )  # fmt: skip
    assert names(tmp_path) == ["keep.log", "only-here.md", "sub/a.log", "sub/top.md", "sub/deep/t.md"]
    found = skips(tmp_path)
    assert found["build"] == found["a.log"] == found["top.md"] == found["sub/deep/t.txt"] == "ignored"
    assert found[".gitignore"] == "hidden"
    assert "build/x.md" not in found  # the folder is the skip


@pytest.mark.spec("I2")
def test_the_walk_takes_what_git_takes(tree: Tree, tmp_path: Path) -> None:
    rules = "*.o\n!/src/keep.o\n/out\ndoc/**/gen\n**/tmp/\na/*/z.md\n[xy]?.md\nfoo\\ bar.md\n!nope\n*.d/\n"
    files = [
        "m.o", "src/m.o", "src/keep.o", "out/a.md", "src/out/a.md", "doc/gen/a.md", "doc/k/l/gen/b.md", "gen/c.md",
        "tmp/a.md", "src/tmp/a.md", "src/tmp.md", "a/b/z.md", "a/b/c/z.md", "x1.md", "y2.md", "z3.md", "foo bar.md",
        "lib.d/a.md", "q.d",
    ]  # fmt: skip
    tree(**{".gitignore": rules, **dict.fromkeys(files, "x")})
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    listed = subprocess.run(
        [*git, "ls-files", "-o", "--exclude-standard", "-z"], check=True, capture_output=True, text=True
    )
    assert sorted(names(tmp_path)) == sorted(set(listed.stdout.split("\0")) - {"", ".gitignore"})


@pytest.mark.spec("I2")
def test_rules_of_the_enclosing_repository_hold_below_it(tree: Tree, tmp_path: Path) -> None:
    tree(**{".git/info/exclude": "*.bak\n", ".gitignore": "*.tmp\n/d/s/x.md\n/d/\n", "d/.ragignore": "*.csv\n"})
    tree(**{"d/s/a.md": "", "d/s/x.md": "", "d/s/a.tmp": "", "d/s/a.csv": "", "d/s/a.bak": ""})
    assert names(tmp_path / "d/s") == ["a.md"]
    assert names(tmp_path / "d/s", gitignore=False) == ["a.bak", "a.md", "a.tmp", "x.md"]
    assert names(tmp_path) == []  # from above, /d/ leaves the folder out


@pytest.mark.spec("I2")
def test_ragignore_may_take_back_what_gitignore_leaves_out(tree: Tree, tmp_path: Path) -> None:
    tree(**{".gitignore": "*.md\n", ".ragignore": "!b.md\n*.txt\n", "a.md": "", "b.md": "", "c.txt": "", "d.rst": ""})
    assert names(tmp_path) == ["b.md", "d.rst"]


@pytest.mark.spec("I2")
def test_hidden_files_and_the_index_are_left_out(tree: Tree, tmp_path: Path) -> None:
    tree(**{".env": "", ".notes/a.md": "", "a.md": "", ".git/config": "", ".ragcli/index.db": "", "idx/x.md": ""})
    assert names(tmp_path, index_folder=tmp_path / "idx") == ["a.md"]
    assert names(tmp_path, hidden=True) == [".env", "a.md", ".notes/a.md", "idx/x.md"]
    found = skips(tmp_path, index_folder=tmp_path / "idx")
    assert found == {".env": "hidden", ".notes": "hidden", ".git": "hidden", ".ragcli": "index", "idx": "index"}


@pytest.mark.spec("I2")
def test_a_file_named_outright_is_taken(tree: Tree, tmp_path: Path) -> None:
    tree(**{".gitignore": "*\n", ".hidden.md": "", "a.md": ""})
    assert names(tmp_path / ".hidden.md", tmp_path / "a.md") == [".hidden.md", "a.md"]


@pytest.mark.spec("I2")
def test_include_and_exclude(tree: Tree, tmp_path: Path) -> None:
    tree(**{"a.md": "", "b.txt": "", "docs/c.md": "", "docs/d.txt": "", "old/e.md": ""})
    assert names(tmp_path, include=("*.md",)) == ["a.md", "docs/c.md", "old/e.md"]
    assert names(tmp_path, include=("docs/",)) == ["docs/c.md", "docs/d.txt"]
    assert names(tmp_path, include=("*.md",), exclude=("old/", "a.*")) == ["docs/c.md"]
    assert skips(tmp_path, exclude=("old/", "a.*")) == {"a.md": "excluded", "old": "excluded"}
    assert skips(tmp_path, include=("docs/",))["a.md"] == "not included"
    assert names(tmp_path / "a.md", tmp_path / "b.txt", exclude=("a.md",)) == ["b.txt"]


@pytest.mark.spec("I2")
def test_the_size_limit_is_not_one_of_streamed_collections(tree: Tree, tmp_path: Path) -> None:
    tree(**{"a.md": "x" * 11, "b.md": "x" * 10, "c.jsonl": "x" * 50})
    sources, problems = walked(tmp_path, max_file_bytes=10)
    assert [source.relative for source in sources] == ["b.md", "c.jsonl"]
    assert [(problem.kind, "11 bytes" in problem.reason) for problem in problems] == [("too-large", True)]


@pytest.mark.spec("I2")
def test_links_are_followed_but_not_in_circles(tree: Tree, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    root = tmp_path / "root"
    tree(**{"root/d/a.md": "", "outside/o.md": ""})
    (root / "d/up").symlink_to(root)
    (root / "out").symlink_to(outside)
    (root / "f.md").symlink_to(outside / "o.md")
    (root / "self").symlink_to(root / "self")
    (root / "gone.md").symlink_to(root / "nothing")
    assert names(root) == ["f.md", "d/a.md", "out/o.md"]
    assert skips(root) == {"d/up": "symlink loop", "self": "symlink loop", "gone.md": "vanished"}


@pytest.mark.spec("I2")
def test_sockets_and_pipes_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path has to be short
    os.mkfifo("pipe.md")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s.md")
        sources, problems = walked(".")
    assert sources == []
    assert [(Path(problem.path).name, problem.kind, problem.reason) for problem in problems] == [
        ("pipe.md", "special", "a named pipe, not a file"),
        ("s.md", "special", "a socket, not a file"),
    ]


@pytest.mark.spec("I2")
def test_a_name_that_is_not_utf8_is_reported(tree: Tree, tmp_path: Path) -> None:
    tree(**{"é 故乡.md": ""})
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.md"))).write_text("x")
    sources, problems = walked(tmp_path)
    assert [source.relative for source in sources] == ["é 故乡.md"]
    assert [(problem.kind, problem.path.endswith("caf\\udce9.md")) for problem in problems] == [
        ("unreadable name", True)
    ]


@pytest.mark.spec("I2")
def test_a_name_that_is_not_utf8_can_be_left_out_by_a_rule(tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.md"))).write_text("x")
    assert [problem.kind for problem in walked(tmp_path, exclude=("caf*",))[1]] == ["excluded"]


@pytest.mark.spec("I2")
@pytest.mark.parametrize(
    ("pattern", "words"),
    [("", "empty"), (" ", "empty"), ("[", r"unclosed \["), ("a[b", r"unclosed \["), ("!", "no pattern")],
)
@pytest.mark.parametrize("option", ["include", "exclude"])
def test_a_pattern_that_is_none_is_named(tmp_path: Path, option: str, pattern: str, words: str) -> None:
    with pytest.raises(UsageError, match=rf"{option} {re.escape(repr(pattern))}: .*{words}"):
        walked(tmp_path, **{option: ("*.md", pattern)})  # type: ignore[arg-type]


@pytest.mark.spec("I2")
def test_an_ignore_file_that_is_a_folder_has_no_rules(tree: Tree, tmp_path: Path) -> None:
    tree(**{".gitignore/x": "", "a.md": ""})
    assert names(tmp_path) == ["a.md"]
    assert skips(tmp_path) == {".gitignore": "hidden"}


@pytest.mark.spec("I1")
def test_a_missing_path_is_named_before_anything_is_read(tree: Tree, tmp_path: Path) -> None:
    tree(**{"a.md": ""})
    with pytest.raises(UsageError, match="nosuch"):
        walk([str(tmp_path), str(tmp_path / "nosuch.md")], IngestSettings(), report=lambda problem: None)


@pytest.mark.parametrize(
    ("argument", "path"),
    [
        ("C:\\docs\\a.pdf", "C:\\docs\\a.pdf"),
        ("file:///C:/d/a%20b.md", "C:/d/a b.md"),
        ("\\\\srv\\share\\a.md", "\\\\srv\\share\\a.md"),
        ("file://srv/share/a.md", "//srv/share/a.md"),
        ("file:///home/u/%5Ba%5D%20b.md", "/home/u/[a] b.md"),
        ("file://localhost/etc/a.md", "/etc/a.md"),
        ("FILE:///a/%E6%95%85.md", "/a/故.md"),
        ("50%25.md", "50%25.md"),
        ("docs/a.md", "docs/a.md"),
    ],
)
def test_file_urls(argument: str, path: str) -> None:
    assert local_path(argument) == path


@pytest.mark.spec("I1")
def test_urls_and_percent_escapes_of_real_files(tree: Tree, tmp_path: Path) -> None:
    tree(**{"a b.md": "", "50%25.md": ""})
    assert names(f"file://{tmp_path}/a%20b.md") == ["a b.md"]
    assert names(f"{tmp_path}/a%20b.md") == ["a b.md"]
    assert names(f"{tmp_path}/50%25.md") == ["50%25.md"]
