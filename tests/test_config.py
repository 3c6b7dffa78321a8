"""Settings: layers, origins, errors with their place, the cache, and the places named by variables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragcli.config import (
    Loaded,
    index_path,
    load,
    looks_secret,
    models_folder,
    names_folder,
    offline,
    openai_service,
    plain_value,
    preset_names,
    setting_keys,
)
from ragcli.errors import ConfigError, OptionError, RagcliError, UsageError
from ragcli.options import Condition, EmbeddingSettings, IndexSettings, Settings

Load = Callable[..., Loaded]
HOUR_NS = 3_600_000_000_000


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def load_here(project: Path, tmp_path: Path) -> Load:
    """`load` in the project, with a home of its own; `yaml` becomes the project's ragcli.yaml."""

    def call(
        yaml: str | None = None,
        *,
        user: str | None = None,
        config: Path | None = None,
        flags: Mapping[str, object] | None = None,
        environ: Mapping[str, str] | None = None,
        cwd: Path = project,
    ) -> Loaded:
        home = tmp_path / "home"
        if yaml is not None:
            (project / "ragcli.yaml").write_text(yaml, encoding="utf-8")
        if user is not None:
            (home / ".config/ragcli").mkdir(parents=True, exist_ok=True)
            (home / ".config/ragcli/config.yaml").write_text(user, encoding="utf-8")
        return load(config=config, flags=flags or {}, environ=environ or {}, cwd=cwd, home=home)

    return call


def message(load_here: Load, yaml: str | None = None, **more: object) -> str:
    with pytest.raises(ConfigError) as caught:
        load_here(yaml, **more)
    assert caught.value.exit_code == 2
    assert "\n" not in caught.value.message
    return caught.value.message


# --- layers


@pytest.mark.spec("C4")
def test_without_files_all_is_default(load_here: Load) -> None:
    loaded = load_here()
    assert loaded.settings == Settings()
    assert dict(loaded.origins) == dict.fromkeys(setting_keys(), "default")
    assert "retrieval.top_k" in loaded.origins


@pytest.mark.spec("C4")
def test_layers_are_merged_key_by_key(load_here: Load) -> None:
    loaded = load_here("bm25:\n  k1: 1\nretrieval:\n  top_k: 7\n", user="bm25: {k1: 2.0, b: 0.5}\n")
    assert (loaded.settings.bm25.k1, loaded.settings.bm25.b, loaded.settings.retrieval.top_k) == (1.0, 0.5, 7)
    assert isinstance(loaded.settings.bm25.k1, float)
    assert loaded.origins["bm25.k1"] == "ragcli.yaml:2"
    assert loaded.origins["retrieval.top_k"] == "ragcli.yaml:4"
    assert loaded.origins["bm25.b"].startswith("user file ")
    assert loaded.origins["bm25.b"].endswith("home/.config/ragcli/config.yaml:1")
    assert loaded.origins["chunking.size"] == "default"


@pytest.mark.spec("C4")
def test_the_nearest_project_file_upward_is_taken(load_here: Load, project: Path) -> None:
    deep = project / "a/b"
    deep.mkdir(parents=True)
    loaded = load_here("retrieval: {top_k: 7}", cwd=deep)
    assert loaded.settings.retrieval.top_k == 7
    assert loaded.origins["retrieval.top_k"] == f"{project / 'ragcli.yaml'}:1"
    (project / "a/ragcli.yaml").write_text("bm25: {b: 0.1}")
    assert load_here(cwd=deep).settings.retrieval.top_k == 5


@pytest.mark.spec("C4")
def test_a_named_file_stands_in_for_the_project_file(load_here: Load, project: Path) -> None:
    (project / "other.yaml").write_text("retrieval: {top_k: 8}")
    assert load_here("retrieval: {top_k: 7}", config=Path("other.yaml")).settings.retrieval.top_k == 8
    assert load_here(environ={"RAGCLI_CONFIG": "other.yaml"}).settings.retrieval.top_k == 8
    (project / "third.yaml").write_text("retrieval: {top_k: 9}")
    loaded = load_here(config=project / "third.yaml", environ={"RAGCLI_CONFIG": "other.yaml"})
    assert (loaded.settings.retrieval.top_k, loaded.origins["retrieval.top_k"]) == (9, "third.yaml:1")


@pytest.mark.spec("C4")
def test_a_preset_is_named_without_path(load_here: Load, project: Path) -> None:
    assert {"default", "english", "keyword"} <= set(preset_names())
    assert load_here(config=Path("english")).settings.analyzer.stemmer == "english"
    (project / "english").write_text("analyzer: {stemmer: german}")
    assert load_here(config=Path("english")).settings.analyzer.stemmer == "german"


@pytest.mark.spec("C4")
def test_a_named_file_that_is_not_there(load_here: Load, project: Path) -> None:
    assert "did you mean english?" in message(load_here, config=Path("englsh"))
    assert message(load_here, config=Path("no.yaml")).startswith("no.yaml: can't be read")
    assert "is a folder" in message(load_here, config=project)


@pytest.mark.spec("C4")
def test_xdg_config_home_is_honoured_when_absolute(load_here: Load, tmp_path: Path) -> None:
    (tmp_path / "xdg/ragcli").mkdir(parents=True)
    (tmp_path / "xdg/ragcli/config.yaml").write_text("retrieval: {top_k: 6}")
    assert load_here(environ={"XDG_CONFIG_HOME": str(tmp_path / "xdg")}).settings.retrieval.top_k == 6
    assert load_here(environ={"XDG_CONFIG_HOME": "xdg"}).settings.retrieval.top_k == 5


# --- environment and flags


@pytest.mark.spec("C4")
@pytest.mark.parametrize(
    ("name", "text", "key", "value"),
    [
        ("RAGCLI_RETRIEVAL__TOP_K", "3", "retrieval.top_k", 3),
        ("RAGCLI_BM25__B", "0.5", "bm25.b", 0.5),
        ("RAGCLI_INGEST__HIDDEN", "true", "ingest.hidden", True),
        ("RAGCLI_INGEST__INCLUDE", "*.md, *.txt,", "ingest.include", ("*.md", "*.txt")),
        ("RAGCLI_OUTPUT__FORMAT", "json", "output.format", "json"),
        ("RAGCLI_RETRIEVAL__CANDIDATE_COUNT", "30", "retrieval.candidate_count", 30),
        ("RAGCLI_INDEX", "here.db", "index.path", "here.db"),
        ("RAGCLI_INDEX__COLLECTION", "2024", "index.collection", "2024"),
        ("RAGCLI_INGEST__TAGS", '{"*.md": {"year": 2024}}', "ingest.tags", {"*.md": {"year": 2024}}),
        (
            "RAGCLI_RETRIEVAL__METADATA_FILTER",
            "lang=de,year:=2024",
            "retrieval.metadata_filter",
            (Condition("lang", "de"), Condition("year", 2024)),
        ),
    ],
)
def test_a_variable_is_read_by_the_kind_of_its_key(
    load_here: Load, name: str, text: str, key: str, value: object
) -> None:
    loaded = load_here(environ={name: text, "UNRELATED": "x"})
    section, _, field = key.partition(".")
    assert getattr(getattr(loaded.settings, section), field) == value
    assert loaded.origins[key] == f"environment {name}"


@pytest.mark.spec("C4")
def test_variables_that_are_no_settings_are_known(load_here: Load) -> None:
    plain = {"RAGCLI_MODELS": "m", "RAGCLI_OFFLINE": "1", "RAGCLI_DEBUG": "1", "RAGCLI_RETRIEVAL__TOP_K": ""}
    assert load_here(environ=plain).settings == Settings()


@pytest.mark.spec("C4")
@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("RAGCLI_TOP_K", "3", "did you mean RAGCLI_RETRIEVAL__TOP_K?"),
        ("RAGCLI_OFLINE", "1", "did you mean RAGCLI_OFFLINE?"),
        ("RAGCLI_FOO", "1", "RAGCLI_FOO: no such setting"),
        ("RAGCLI_RETRIEVAL__TOP_K", "three", "RAGCLI_RETRIEVAL__TOP_K: retrieval.top_k must be a whole number"),
        ("RAGCLI_RETRIEVAL__TOP_K", "0", "RAGCLI_RETRIEVAL__TOP_K: retrieval.top_k = 0 is out of range"),
        ("RAGCLI_INGEST__TAGS", "{", "RAGCLI_INGEST__TAGS: ingest.tags must be a map"),
        ("RAGCLI_RETRIEVAL__METADATA_FILTER", "lang", "RAGCLI_RETRIEVAL__METADATA_FILTER: "),
    ],
)
def test_a_variable_that_can_not_be_used_is_named(load_here: Load, name: str, text: str, words: str) -> None:
    assert words in message(load_here, environ={name: text})


def test_two_variables_for_one_key_are_refused(load_here: Load) -> None:
    said = message(load_here, environ={"RAGCLI_INDEX": "a", "RAGCLI_INDEX__PATH": "b"})
    assert "RAGCLI_INDEX__PATH" in said
    assert "environment RAGCLI_INDEX " in said


@pytest.mark.spec("C4")
def test_flags_come_typed_or_as_text_and_none_is_not_given(load_here: Load) -> None:
    flags = {
        "retrieval.top_k": "3",
        "bm25.b": 0.5,
        "bm25.k1": None,
        "ingest.include": ["*.md"],
        "retrieval.metadata_filter": [Condition("since", date(2024, 5, 1))],
    }
    loaded = load_here(flags=flags)
    assert (loaded.settings.retrieval.top_k, loaded.settings.bm25.b, loaded.settings.bm25.k1) == (3, 0.5, 1.5)
    assert loaded.settings.ingest.include == ("*.md",)
    assert loaded.settings.retrieval.metadata_filter == (Condition("since", date(2024, 5, 1)),)
    assert (loaded.origins["bm25.b"], loaded.origins["bm25.k1"]) == ("flag", "default")


def test_a_flag_out_of_range_is_an_option_error(load_here: Load) -> None:
    with pytest.raises(OptionError, match=r"retrieval.top_k = 0 is out of range: 1 to"):
        load_here("retrieval: {top_k: 3}", flags={"retrieval.top_k": 0})
    assert (
        message(load_here, flags={"retrieval.topk": 1}) == "unknown key retrieval.topk; did you mean retrieval.top_k?"
    )


# --- what is wrong in a file


@pytest.mark.spec("C4")
@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        ("\nretrival: {}", "ragcli.yaml:2: unknown key retrival; did you mean retrieval?"),
        ("top_k: 3", "ragcli.yaml:1: unknown key top_k; did you mean retrieval.top_k?"),
        ("bm25:\n  q9: 3", "ragcli.yaml:2: unknown key bm25.q9"),
        ("bm25: 3", "ragcli.yaml:1: bm25 must hold `key: value` lines, not '3'"),
        ("- a", "ragcli.yaml:1: the file must hold `key: value` lines, not a list"),
        ("bm25: {b: }", "ragcli.yaml:1: bm25.b must be a number, not null"),
        ("bm25: {b: [1]}", "ragcli.yaml:1: bm25.b must be a number, not a list"),
        ("bm25:\n\n  b: {x: 1}", "ragcli.yaml:3: bm25.b must be a number, not a map"),
        ("ingest: {hidden: yes}", "ragcli.yaml:1: ingest.hidden must be true or false, not 'yes'"),
        ("ingest: {include: '*.md'}", "ragcli.yaml:1: ingest.include must be a list of texts, not '*.md'"),
        ("ingest: {include: [1]}", "ragcli.yaml:1: ingest.include must be a list of texts, not a list"),
        (
            "ingest: {tags: {'*': 3}}",
            "ragcli.yaml:1: ingest.tags must be a map of globs, each with its own map of tags",
        ),
        ("ingest: {tags: {'*': {a: {b: 1}}}}", "ragcli.yaml:1: ingest.tags must be a map of globs"),
        ("index: {collection: 2024}", "ragcli.yaml:1: index.collection must be text, not 2024"),
        ("chunking: {unit: words}", "ragcli.yaml:1: chunking.unit must be one of characters, tokens, not 'words'"),
        ("output:\n  format: xml", "ragcli.yaml:2: output.format must be one of table, json"),
        ("chunking:\n  size: 100", "ragcli.yaml:2: chunking.overlap = 160 is out of range: less than chunking.size"),
        ("retrieval: {metadata_filter: [lang]}", "ragcli.yaml:1: retrieval.metadata_filter: --filter lang: no `=`"),
        ("a: [1", "ragcli.yaml:"),
        ("bm25: {b: 1}\n---\nbm25: {b: 0}", "ragcli.yaml:2: not YAML"),
        ("bm25: {b: 1}\nbm25: {k1: 0}", "ragcli.yaml:2: duplicate key bm25"),
        ("ingest:\n  tags:\n    '*': {a: 1,\n      a: 2}", "ragcli.yaml:4: duplicate key a"),
        ("bm25: &x {b: 1}", None),
        ("ingest: {include: &x [a], exclude: *x}", "ragcli.yaml:1: anchors and aliases are not supported"),
        ("ingest: {include: &x [*x]}", "ragcli.yaml:1: anchors and aliases are not supported"),
        ("bm25: {b: !!python/name:os.system 1}", "ragcli.yaml:1: tags (tag:yaml.org,2002:python/name:os.system)"),
        ("? [a]\n: 1", "ragcli.yaml:1: a key must be plain text"),
        ("bm25:\n  b: \x01", "ragcli.yaml:2: not YAML: control characters"),
        ("[" * 2000, "ragcli.yaml:1: not YAML"),
    ],
)
def test_the_place_and_the_reason_are_said(load_here: Load, yaml: str, said: str | None) -> None:
    if said is None:
        assert load_here(yaml).settings.bm25.b == 1.0
    else:
        assert message(load_here, yaml).startswith(said)


@pytest.mark.spec("C4")
def test_an_error_in_the_user_file_names_it(load_here: Load) -> None:
    assert message(load_here, user="\nbm25: {q: 1}").endswith("home/.config/ragcli/config.yaml:2: unknown key bm25.q")


def test_files_that_are_no_text_are_refused(load_here: Load, project: Path) -> None:
    (project / "ragcli.yaml").write_bytes(b"bm25:\n  b: \xff")
    assert message(load_here).startswith("ragcli.yaml:2: not UTF-8")
    (project / "ragcli.yaml").write_bytes(b"#" * 2_000_000)
    assert "larger than" in message(load_here)
    (project / "ragcli.yaml").write_bytes(b"\xef\xbb\xbfbm25: {b: 0.5}\r\n")
    assert load_here().settings.bm25.b == 0.5


@pytest.mark.parametrize("empty", ["", "\n# nothing\n", "bm25:\n", "bm25: {}", "---\n"])
def test_an_empty_file_or_section_sets_nothing(load_here: Load, empty: str) -> None:
    assert load_here(empty).settings == Settings()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None), ("~", None), ("null", None), ("true", True), ("False", False), ("yes", "yes"), ("NO", "NO"),
        ("0", 0), ("-12", -12), ("+3", 3), ("0x1F", 31), ("0o17", 15), ("010", "010"), ("007.5", "007.5"),
        ("1.5", 1.5), (".5", 0.5), ("1.", 1.0), ("1e3", 1000.0), ("-1.5E-2", -0.015), ("1e999", "1e999"),
        ("1_000", "1_000"), ("1:30", "1:30"), (".nan", ".nan"), (".", "."), ("1.2.3", "1.2.3"),
        ("2024-05-01", date(2024, 5, 1)), ("2024-13-01", "2024-13-01"),
        ("2024-05-01T10:00:00Z", datetime(2024, 5, 1, 10, tzinfo=UTC)), ("9" * 30, float("9" * 30)),
    ],
)  # fmt: skip
def test_plain_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    assert plain_value(text) == value
    assert type(plain_value(text)) is type(value)


@pytest.mark.spec("C4", "I11")
def test_quoted_text_stays_text_and_tags_keep_their_kinds(load_here: Load) -> None:
    yaml = """
ingest:
  tags:
    "docs/*": {lang: de, year: 2024, zip: "01234", draft: false, since: 2024-05-01, authors: [Ann, Bob], none: null}
    2024/*: {n: "5"}
retrieval:
  metadata_filter: [lang=de, "year:=2024", {key: since, value: 2024-05-01}]
"""
    loaded = load_here(yaml)
    assert loaded.settings.ingest.tags == {
        "docs/*": {
            "lang": "de", "year": 2024, "zip": "01234", "draft": False, "since": date(2024, 5, 1),
            "authors": ("Ann", "Bob"), "none": None,
        },
        "2024/*": {"n": "5"},
    }  # fmt: skip
    since = Condition("since", date(2024, 5, 1))
    assert loaded.settings.retrieval.metadata_filter == (Condition("lang", "de"), Condition("year", 2024), since)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(alphabet="abm25:{}[]\n -'\"$&*!|>#\t0\u00e9", max_size=40))
def test_any_file_is_settings_or_a_clear_error(load_here: Load, yaml: str) -> None:
    try:
        load_here(yaml)
    except RagcliError as error:
        assert error.message.startswith("ragcli.yaml:")


# --- variables in files


@pytest.mark.spec("C4")
def test_variables_in_a_file_are_put_in(load_here: Load) -> None:
    yaml = 'retrieval: {top_k: "${K}", where: "$${x} costs $5"}'
    assert "must be a whole number, not '${K}'" in message(load_here, yaml, environ={"K": "three"})
    assert load_here(yaml, environ={"K": "3"}).settings.retrieval.top_k == 3
    assert load_here("index:\n  collection: ${A}", environ={"A": "2024"}).settings.index.collection == "2024"
    loaded = load_here("retrieval:\n  top_k: ${K}\n  where: $${x} costs $5 ${A}${A}", environ={"K": "3", "A": "a"})
    assert (loaded.settings.retrieval.top_k, loaded.settings.retrieval.where) == (3, "${x} costs $5 aa")


@pytest.mark.spec("C4")
def test_a_variable_that_is_not_set_is_named(load_here: Load) -> None:
    said = message(load_here, "retrieval:\n  where: ${NOPE}")
    assert said == "ragcli.yaml:2: the environment variable NOPE is not set"
    assert "names no variable" in message(load_here, "retrieval: {where: '${a-b}'}")
    assert "names no variable" in message(load_here, "retrieval: {where: '${a'}")


@pytest.mark.spec("C4")
def test_the_value_of_a_variable_is_never_shown(load_here: Load) -> None:
    for yaml in ("retrieval: {top_k: ${API_KEY}}", "ingest: {include: {a: [${API_KEY}]}}"):
        assert "hunter2" not in message(load_here, yaml, environ={"API_KEY": "hunter2"})
    assert [looks_secret(key) for key in ("llm.api_key", "x.token", "bm25.b")] == [True, True, False]


# --- what a found file may not do


@pytest.mark.parametrize("path", ["../other/index.db", "/tmp/index.db", "~/index.db", "link/index.db"])
def test_a_found_file_may_not_lead_out_of_its_folder(load_here: Load, project: Path, path: str) -> None:
    (project / "link").symlink_to(project.parent)
    yaml = f"bm25: {{b: 0.5}}\nindex: {{path: {path!r}}}"
    with pytest.raises(ConfigError, match=r"ragcli\.yaml:2: index.path leads out") as caught:
        load_here(yaml)
    assert "--config ragcli.yaml" in caught.value.hint
    named = load_here(config=project / "ragcli.yaml")
    assert named.settings.index.path is not None


def test_a_found_file_may_not_run_code(load_here: Load, project: Path) -> None:
    yaml = "chunking: {strategy: 'evil.module:Class'}"
    with pytest.raises(ConfigError, match=r"ragcli\.yaml:1: chunking.strategy = evil.module:Class runs code"):
        load_here(yaml)
    assert load_here(config=Path("ragcli.yaml")).settings.chunking.strategy == "evil.module:Class"
    with pytest.raises(ConfigError, match="runs code"):
        load_here()  # what was read when the file was named is not taken for a found file
    (project / "ragcli.yaml").unlink()
    assert load_here(user=yaml).settings.chunking.strategy == "evil.module:Class"


@pytest.mark.spec("I30")
def test_a_path_in_a_file_is_meant_from_that_file(load_here: Load, project: Path) -> None:
    (project / "sub").mkdir()
    assert load_here("index: {path: idx/a.db}", cwd=project / "sub").settings.index.path == str(project / "idx/a.db")
    home = project.parent / "home"
    assert load_here("", user="index: {path: ~/a.db}").settings.index.path == str(home / "a.db")


# --- start-up


def age(path: Path) -> None:
    past = path.stat().st_mtime_ns - HOUR_NS
    os.utime(path, ns=(past, past))


SCRIPT = """
import sys
from pathlib import Path
from ragcli.config import load
loaded = load(config=None, flags={}, environ={}, cwd=Path(sys.argv[1]), home=Path(sys.argv[2]))
print(int("yaml" in sys.modules), int("difflib" in sys.modules), loaded.settings.retrieval.top_k,
      loaded.origins["retrieval.top_k"])
"""


def fresh(project: Path, home: Path) -> str:
    done = subprocess.run([sys.executable, "-c", SCRIPT, project, home], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.spec("C6")
def test_yaml_is_imported_once_for_each_change_of_a_file(project: Path, tmp_path: Path) -> None:
    home, file = tmp_path / "home", project / "ragcli.yaml"
    assert fresh(project, home) == "0 0 5 default"
    assert not home.exists()
    file.write_text("retrieval: {top_k: 7}")
    age(file)
    assert fresh(project, home) == "1 0 7 ragcli.yaml:1"
    assert fresh(project, home) == "0 0 7 ragcli.yaml:1"
    file.write_text("retrieval: {top_k: 8}")
    age(file)
    assert fresh(project, home) == "1 0 8 ragcli.yaml:1"
    assert len(list((home / ".cache/ragcli/settings").iterdir())) == 1


def cached(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "home/.cache/ragcli/settings").glob("*"))


def test_a_file_that_may_still_change_is_not_cached(load_here: Load, tmp_path: Path) -> None:
    for k in range(1, 9):
        assert load_here(f"retrieval: {{top_k: {k}}}").settings.retrieval.top_k == k
    assert cached(tmp_path) == []


@pytest.mark.parametrize("yaml", ["retrieval: {where: '${A}'}", "ingest: {tags: {'*': {since: 2024-05-01}}}"])
def test_variables_and_dates_are_read_anew(load_here: Load, project: Path, tmp_path: Path, yaml: str) -> None:
    (project / "ragcli.yaml").write_text(yaml)
    age(project / "ragcli.yaml")
    first = load_here(environ={"A": "one"})
    second = load_here(environ={"A": "two"})
    assert first.settings.ingest == second.settings.ingest
    assert second.settings.retrieval.where in {"two", ""}
    assert cached(tmp_path) == []


def test_a_broken_cache_is_only_a_cache(load_here: Load, project: Path, tmp_path: Path) -> None:
    (project / "ragcli.yaml").write_text("retrieval: {top_k: 7}\ningest: {tags: {'*': {a: [1, x], b: 2.0, c: true}}}")
    age(project / "ragcli.yaml")
    first = load_here()
    (file,) = cached(tmp_path)
    assert file.stat().st_mode & 0o077 == 0
    assert load_here() == first
    good = json.loads(file.read_bytes())
    for content in (
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"state": "", "layers": []}',
        json.dumps(good | {"layers": 3}).encode(),
    ):
        file.write_bytes(content)
        assert load_here() == first
    file.unlink()
    file.mkdir()
    assert load_here() == first


def test_a_cache_that_can_not_be_written_is_done_without(load_here: Load, project: Path, tmp_path: Path) -> None:
    (project / "ragcli.yaml").write_text("retrieval: {top_k: 7}")
    age(project / "ragcli.yaml")
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.cache").write_text("no folder")
    assert load_here().settings.retrieval.top_k == 7


# --- places


@pytest.mark.spec("I30")
def test_the_index_is_the_nearest_folder_upward(tmp_path: Path) -> None:
    deep = tmp_path / "a/b"
    deep.mkdir(parents=True)
    assert index_path(Settings(), cwd=deep) == deep / ".ragcli/index.db"
    (tmp_path / ".ragcli").mkdir()
    assert index_path(Settings(), cwd=deep) == tmp_path / ".ragcli/index.db"
    (tmp_path / "a/.ragcli").write_text("a file is no index folder")
    assert index_path(Settings(), cwd=deep) == tmp_path / ".ragcli/index.db"


@pytest.mark.spec("I30")
def test_a_named_index_is_a_file_or_its_folder(tmp_path: Path) -> None:
    def at(path: str) -> Path:
        return index_path(Settings(index=IndexSettings(path=path)), cwd=tmp_path)

    (tmp_path / "folder.db").mkdir()
    (tmp_path / "plain").write_text("")
    assert at("new") == tmp_path / "new/index.db"
    assert at("new.db") == tmp_path / "new.db"
    assert at("folder.db") == tmp_path / "folder.db/index.db"
    assert at("plain") == tmp_path / "plain"
    assert at("/elsewhere/x.db") == Path("/elsewhere/x.db")


def test_where_models_are(tmp_path: Path) -> None:
    assert models_folder({"RAGCLI_MODELS": "/m"}, tmp_path) == Path("/m")
    assert models_folder({"XDG_CACHE_HOME": "/c"}, tmp_path) == Path("/c/ragcli/models")
    assert models_folder({}, tmp_path) == tmp_path / ".cache/ragcli/models"
    with pytest.raises(ConfigError, match="no home folder"):
        models_folder({}, None)


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_offline(value: str, expected: bool) -> None:
    assert offline({"RAGCLI_OFFLINE": value}) is expected
    assert offline({"HF_HUB_OFFLINE": value}) is expected
    assert offline({}) is False


def test_settings_are_two_levels_deep() -> None:
    """`load` takes SECTION.KEY; a deeper section would need more of it."""
    for key in setting_keys():
        section, _, field = key.partition(".")
        assert not isinstance(getattr(getattr(Settings(), section), field), msgspec.Struct)


# --- services and models


@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        ("embedding: {base_url: https://evil.example/v1}", "embedding.base_url sends texts to a service"),
        ("embedding: {api_key: sk-hunter2}", "embedding.api_key sends texts to a service"),
        ("embedding: {api_key: '${HOME_KEY}'}", "embedding.api_key sends texts to a service"),
        ("models: {embedder: 'openai:text-embedding-3-small'}", "models.embedder = openai:text-embedding-3-small reac"),
        ("models: {embedder: 'hub:org/name'}", "models.embedder = hub:org/name reaches out"),
        ("models: {embedder: ../other/model}", "models.embedder leads out of the file's folder"),
        ("models: {embedder: /srv/model}", "models.embedder leads out of the file's folder"),
        ("models: {embedder: ~/model}", "models.embedder leads out of the file's folder"),
        ("models: {embedder: link/model}", "models.embedder leads out of the file's folder"),
        ("models: {embedder: link}", "models.embedder leads out of the file's folder"),
        ("models: {folder: ../models}", "models.folder leads out of the file's folder"),
        ("models: {folder: ~/models}", "models.folder leads out of the file's folder"),
    ],
)
def test_a_found_file_may_not_reach_out(load_here: Load, project: Path, yaml: str, said: str) -> None:
    (project / "link").symlink_to(project.parent)
    caught = message(load_here, f"bm25: {{b: 0.5}}\n{yaml}", environ={"HOME_KEY": "hunter2"})
    assert caught.startswith(f"ragcli.yaml:2: {said}")
    assert caught.endswith("and nobody named this file")
    assert "hunter2" not in caught
    load_here(config=Path("ragcli.yaml"), environ={"HOME_KEY": "hunter2"})
    with pytest.raises(ConfigError):
        load_here(environ={"HOME_KEY": "hunter2"})
    (project / "ragcli.yaml").unlink()
    load_here(user=yaml, environ={"HOME_KEY": "hunter2"})


def test_a_found_file_may_name_what_is_here(load_here: Load, project: Path) -> None:
    assert load_here("models: {embedder: minilm}").settings.models.embedder == "minilm"
    assert load_here("models: {embedder: none, folder: models}").settings.models.folder == str(project / "models")
    (project / "deep").mkdir()
    loaded = load_here("models: {embedder: ./model}", cwd=project / "deep")
    assert loaded.settings.models.embedder == str(project / "model")
    assert load_here("embedding: {dimensions: 256, base_url: null}").settings.embedding.dimensions == 256


@pytest.mark.parametrize(
    ("value", "is_path"),
    [("minilm", False), ("openai:a/b", False), ("hub:a/b", False), ("a/b", True), ("./a", True), ("~/a", True),
     ("/a", True), ("..", True), ("none", False)],
)  # fmt: skip
def test_an_embedder_with_a_slash_or_a_dot_first_is_a_folder(value: str, is_path: bool) -> None:
    assert names_folder(value) is is_path


OPENAI = "https://api.openai.com/v1"


@pytest.mark.spec("M5")
@pytest.mark.parametrize(
    ("chosen", "environ", "expected"),
    [
        ({}, {"OPENAI_API_KEY": "k"}, (OPENAI, "k")),
        ({}, {"OPENAI_API_KEY": " k\n"}, (OPENAI, "k")),
        ({}, {"OPENAI_BASE_URL": "http://a/v1", "OPENAI_API_KEY": ""}, ("http://a/v1", None)),
        ({"base_url": "http://b/v1"}, {"OPENAI_BASE_URL": "http://a/v1"}, ("http://b/v1", None)),
        ({"base_url": "http://b/v1", "api_key": "j"}, {"OPENAI_API_KEY": "k"}, ("http://b/v1", "j")),
        ({"api_key": "j"}, {}, (OPENAI, "j")),
    ],
)
def test_settings_name_a_service_before_the_environment_does(
    chosen: dict[str, str], environ: dict[str, str], expected: tuple[str, str | None]
) -> None:
    assert openai_service(EmbeddingSettings(**chosen), environ=environ) == expected  # type: ignore[arg-type]


@pytest.mark.spec("M5")
def test_without_a_service_and_a_key_it_says_what_to_set() -> None:
    with pytest.raises(UsageError, match="no service is named") as caught:
        openai_service(EmbeddingSettings(), environ={"OPENAI_BASE_URL": ""})
    assert "OPENAI_API_KEY" in caught.value.hint


def test_a_key_in_a_file_is_kept_in_no_other_file(load_here: Load, tmp_path: Path) -> None:
    def cached() -> list[Path]:
        return [path for path in (tmp_path / "home").rglob("*.json") if b"hunter2" in path.read_bytes()]

    old = 1_000_000_000 * 10**9
    for yaml in (
        "embedding: {query_prefix: hunter2}",
        "embedding: {api_key: hunter2}",
        "embedding: {base_url: 'https://me:hunter2@example.org/v1'}",
        "embedding: {base_url: 'https://example.org/v1?api_key=hunter2'}",
    ):
        load_here(user=yaml)
        file = tmp_path / "home/.config/ragcli/config.yaml"
        os.utime(file, ns=(old, old))
        load_here()
        assert bool(cached()) is ("query_prefix" in yaml)
        for path in cached():
            path.unlink()


def test_numbers_of_tokens_are_no_secret(load_here: Load) -> None:
    assert "not 'many'" in message(load_here, "embedding: {batch_tokens: many}")
    assert [looks_secret(key) for key in ("embedding.api_key", "x.token", "embedding.max_tokens")] == [
        True,
        True,
        False,
    ]
