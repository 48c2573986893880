"""--like never takes the input: what is predicted from it would be a look that nobody paid for."""

from __future__ import annotations

import gzip
import os
import shutil

import pytest

from dpsynth_cli.errors import UsageError
from dpsynth_cli.release.predict.like import WHY, refuse_input


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text("a\n1\n2\n")
    (tmp_path / "public.csv").write_text("a\n1\n3\n")
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    (tmp_path / "folder" / "deep" / "p.parquet").write_bytes(b"PAR1 real")
    (tmp_path / "public.parquet").write_bytes(b"PAR1 fake")
    os.symlink("in.csv", "link.csv")
    os.link("in.csv", "hard.csv")
    shutil.copy("in.csv", "copy.csv")
    shutil.copy("folder/deep/p.parquet", "copy.parquet")
    os.symlink("folder", "linked")
    return tmp_path


@pytest.mark.parametrize(
    ("like", "source"),
    [
        ("in.csv", "in.csv"),
        ("./folder/../in.csv", "in.csv"),
        ("link.csv", "in.csv"),
        ("in.csv", "link.csv"),
        ("hard.csv", "in.csv"),
        ("copy.csv", "in.csv"),
        ("in.csv", "i?.csv"),
        ("folder", "folder"),
        ("linked", "folder"),
        ("folder/deep/p.parquet", "folder"),
        ("copy.parquet", "folder"),
        ("folder", "folder/deep/p.parquet"),
        ("folder/deep/p.parquet", "folder/*/*.parquet"),
        ("gone.csv", "gone.csv"),
    ],
)
def test_the_input_under_any_name_is_refused(files, like, source):
    with pytest.raises(UsageError) as refused:
        refuse_input(like, source)
    assert refused.value.happened == f"--like {like} is the input itself, a part or a copy of it."
    assert refused.value.next_step == WHY


def test_links_are_known_without_reading_a_byte(files, monkeypatch):
    monkeypatch.setattr("filecmp.cmp", lambda *words, **more: pytest.fail("bytes were read"))
    for like in ("hard.csv", "link.csv"):
        with pytest.raises(UsageError):
            refuse_input(like, "in.csv")


@pytest.mark.parametrize(
    ("like", "source"),
    [
        ("public.csv", "in.csv"),
        ("public.csv", ""),
        ("public.csv", "-"),
        ("public.csv", "gone.csv"),
        ("public.parquet", "folder"),
    ],
)
def test_another_file_is_taken(files, like, source):
    refuse_input(like, source)


def test_a_pipe_is_refused_since_it_may_carry_the_data(files):
    with pytest.raises(UsageError, match="--like needs a file, not standard input"):
        refuse_input("-", "in.csv")


def test_check_and_plan_refuse_it_in_words(dpsynth, people, tmp_path):
    spec = people("marginals")
    for words in (["check", spec], ["plan", spec, "-t", "tvd1=0.1"]):
        ran = dpsynth(*words, "--like", "people.csv")
        assert ran.code == 2
        assert ran.err == (
            "Error: --like people.csv is the input itself, a part or a copy of it.\n"
            f"Nothing was read and nothing was spent. {WHY}\n"
        )
        assert not ran.out


def test_a_compressed_copy_is_beyond_it(files):
    """Said in the docs: only what is the same file or the same bytes is found out."""
    with open("in.csv", "rb") as source, gzip.open("in.csv.gz", "wb") as packed:
        packed.write(source.read())
    refuse_input("in.csv.gz", "in.csv")
