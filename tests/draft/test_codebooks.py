"""Claims about codebooks: each kind says the same of the same table."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth_cli.draft.codebook import Known, read_codebook
from dpsynth_cli.draft.draft import draft
from dpsynth_cli.errors import UsageError
from dpsynth_cli.spec.spec import load_spec
from tests.draft.books import CSVW, DDI, DOMAIN, EXPECTATIONS, FRICTIONLESS, PLAIN, ROWS, SDV, book

WHOLE = {
    "age": "{type: integer, bounds: [0, 120]}",
    "score": "{type: continuous, bounds: [0, 1]}",
    "sex": "{type: nominal, categories: [F, M]}",
    "stage": "{type: ordinal, categories: [1, 2]}",
    "smoker": "{type: boolean, nullable: true}",
    "seen": "{type: date, bounds: [2020-01-01, 2020-12-31]}",
}


LABELLED = "{type: ordinal, categories: [1, 2], labels: {1: low, 2: high}}"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(ROWS)


def columns(codebook: str, rows: bool = False) -> dict[str, str]:
    """The lines of a draft by column, without what follows them; why it is left out, where it is."""
    made = draft("people.csv", codebook=codebook, rows=rows)
    return {
        line.name: line.left_out or line.text.partition(": ")[2].partition("  # ")[0].replace("1.0]", "1]")
        for line in made.lines
    }


@pytest.mark.parametrize(
    ("name", "content", "differs"),
    [
        ("book.json", FRICTIONLESS, {"mail": "its type is object", "stage": LABELLED}),
        (
            "book.json",
            {"resources": [{"path": "data/people.csv", "schema": FRICTIONLESS}, {"name": "other"}]},
            {"mail": "its type is object", "stage": LABELLED},
        ),
        (
            "book.json",
            CSVW,
            {"mail": "its datatype is anyuri", "stage": "{type: nominal, categories: [1, 2]}"},
        ),
        (
            "book.json",
            EXPECTATIONS,
            {
                "mail": '{type: "?", bounds: ["?", "?"], nullable: true}',
                "stage": "{type: nominal, categories: [1, 2]}",
            },
        ),
        ("book.csv", PLAIN, {"mail": "its type is id"}),
        (
            "book.xml",
            DDI,
            {
                "smoker": '{type: "?", bounds: ["?", "?"], nullable: true}',
                "mail": '{type: "?", bounds: ["?", "?"], nullable: true}',
            }
            | {name: line[:-1] + ", nullable: true}" for name, line in WHOLE.items() if name != "smoker"},
        ),
        (
            "domain.yaml",
            DOMAIN,
            {
                "age": "{type: integer, bounds: [0, 120], nullable: true}",
                "score": "{type: continuous, bounds: [0, 1], nullable: true}",
                "sex": "{type: nominal, categories: [F, M], other: M, nullable: true}",
                "stage": "{type: nominal, categories: [1, 2], other: 1, nullable: true}",
                "seen": '{type: nominal, categories: ["?", "?"], nullable: true}',
                "mail": "it is free text",
            },
        ),
        (
            "metadata.json",
            SDV,
            {
                "age": "{type: integer, bounds: [0, 120], nullable: true}",  # by its name
                "score": '{type: "?", bounds: ["?", "?"], nullable: true}',
                "sex": '{type: nominal, categories: ["?", "?"], nullable: true}',
                "stage": "{type: ordinal, categories: [1, 2], nullable: true}",
                "seen": '{type: date, bounds: ["?", "?"], nullable: true}',
                "mail": "its sdtype is email",
            },
        ),
    ],
    ids=["frictionless", "package", "csvw", "expectations", "plain", "ddi", "google", "sdv"],
)
def test_each_kind_of_codebook_says_what_it_can(name: str, content: object, differs: dict[str, str]) -> None:
    assert columns(book(name, content)) == WHOLE | differs


def test_a_whole_codebook_makes_a_spec_that_is_valid_at_once_and_looks_at_no_row() -> None:
    made = draft("people.csv", "spec.yaml", codebook=book("book.json", FRICTIONLESS), rows=False)
    assert not made.missing
    Path("spec.yaml").write_text(made.text)
    assert [column.name for column in load_spec("spec.yaml").domain] == list(WHOLE)
    assert "alone; no row was looked at" in made.text


def test_a_draft_is_valid_as_soon_as_its_gaps_are_filled() -> None:
    made = draft("people.csv", "spec.yaml", codebook=book("metadata.json", SDV))
    text = made.text.replace('categories: ["?", "?"]', "categories: [F, M]")
    text = text.replace('date, bounds: ["?", "?"]', "date, bounds: [2020-01-01, 2020-12-31]")
    Path("spec.yaml").write_text(text.replace('bounds: ["?", "?"]', "bounds: [0, 120]"))
    assert len(load_spec("spec.yaml").domain.columns) == len(WHOLE)
    assert {line.name for line in made.missing} == {"score", "sex", "seen"}


def test_a_column_that_need_not_be_filled_is_nullable_unless_a_look_says_that_it_is_filled() -> None:
    fields = [{"name": name, "type": "boolean", "constraints": limits} for name, limits in
              [("smoker", {}), ("sex", {"required": False}), ("age", {"required": True})]]  # fmt: skip
    codebook = book("book.json", {"fields": fields})
    unseen, seen = columns(codebook), columns(codebook, rows=True)
    assert [unseen[name] for name in ("smoker", "sex", "age")] == [
        "{type: boolean, nullable: true}",
        "{type: boolean, nullable: true}",
        "{type: boolean}",
    ]
    assert [seen[name] for name in ("smoker", "sex")] == [
        "{type: boolean}",
        "{type: boolean, nullable: true}",
    ]


def test_what_a_codebook_leaves_open_the_form_of_the_cells_tells() -> None:
    lines = columns(book("metadata.json", SDV), rows=True)
    assert lines["score"] == '{type: continuous, bounds: ["?", "?"], decimals: 1}'
    assert lines["age"] == "{type: integer, bounds: [0, 120]}"  # no longer nullable


def test_statistics_of_the_rows_in_a_codebook_are_not_taken() -> None:
    text = draft("people.csv", codebook=book("book.xml", DDI), rows=False).text
    assert "97" not in text
    assert "17" not in text
    assert "# Age in years\n" in text


def test_codes_for_missing_answers_in_ddi_are_no_categories_but_make_a_column_nullable() -> None:
    sex = "<var name='sex'><catgry><catValu>F</catValu></catgry>{}<varFormat type='character'/></var>"
    missing = "<catgry missing='Yes'><catValu>-9</catValu><labl>no answer</labl></catgry>"
    (plain,) = read_codebook(book("b.xml", sex.format("")), "t")
    (marked,) = read_codebook(book("b.xml", sex.format(missing)), "t")
    assert (plain.categories, plain.nullable) == (("F",), None)
    assert (marked.categories, marked.nullable) == (("F",), True)


def test_codes_beside_the_numbers_of_a_continuous_variable_are_not_all_of_its_values() -> None:
    age = "<var name='age' intrvl='contin' dcml='0'><catgry><catValu>97</catValu></catgry>"
    age += "<varFormat type='numeric'/></var>"
    (facts,) = read_codebook(book("b.xml", age), "t")
    assert (facts.type, facts.categories, facts.bounds) == ("integer", (), False)


def test_a_document_type_of_ddi_is_not_fetched_and_its_entities_are_refused(monkeypatch) -> None:
    first = '<!DOCTYPE codeBook SYSTEM "http://127.0.0.1:9/Version2-0.dtd">\n'
    (facts,) = read_codebook(book("b.xml", f"{first}<codeBook><var name='a&lt;b'/></codeBook>"), "t")
    assert facts.name == "a<b"
    with pytest.raises(UsageError, match=r"^b\.xml, line 2: it defines or refers to an entity"):
        read_codebook(
            book("b.xml", f"{first}<codeBook><var name='a'><labl>&auml;</labl></var></codeBook>"), "t"
        )


def test_the_schema_that_a_release_records_is_a_codebook_for_the_next(dpsynth, people, tmp_path) -> None:
    assert dpsynth("release", people()).code == 0
    assert dpsynth("record", "out/people.audit.public.json").code == 0
    ran = dpsynth(
        "release",
        "people.csv",
        "--epsilon",
        1,
        "--codebook",
        "out/people.schema.json",
        "-o",
        "2.csv",
        "--json",
    )
    assert ran.code == 0, ran.err
    before, after = load_spec(str(people())), load_spec(ran.json["files"]["spec"])
    assert after.domain.columns == before.domain.columns


def test_names_are_found_as_written_then_by_letters_then_by_pattern() -> None:
    facts = read_codebook(
        book("b.csv", "name,min,max\nAGE,0,1\nage ,0,2\nAge,0,3\nq*,0,4\nq7,0,5\nSex,0,6\n"), "t"
    )
    known = Known(facts[1:])
    upper = {
        name: facts.upper for name in ("Age", "age", "q1", "q7", "sex", "z") if (facts := known.of(name))
    }
    assert upper == {"Age": "3", "age": "2", "q1": "4", "q7": "5", "sex": "6"}


def test_a_codebook_says_how_cells_are_written() -> None:
    fields = [
        {"name": "age", "type": "integer", "groupChar": ".", "decimalChar": ","},
        {"name": "score", "type": "number", "decimalChar": ",", "missingValues": ["-9"]},
        {"name": "smoker", "type": "boolean", "trueValues": ["Ja"], "falseValues": ["Nein"]},
        {"name": "seen", "type": "date", "format": "%d.%m.%Y"},
    ]
    made = columns(book("book.json", {"fields": fields, "missingValues": ["", "NA"]}))
    assert made["age"].endswith('decimal: ",", thousands: ".", missing: ["", NA]}')
    assert made["score"].endswith('decimal: ",", missing: [-9]}')
    assert made["smoker"] == '{type: boolean, nullable: true, true: [Ja], false: [Nein], missing: ["", NA]}'
    assert made["seen"].endswith('date: "%d.%m.%Y", missing: ["", NA]}')
    csvw = {
        "@context": "http://www.w3.org/ns/csvw",
        "tableSchema": {
            "columns": [
                {
                    "name": "score",
                    "datatype": {"base": "decimal", "format": {"decimalChar": ","}},
                    "null": "-",
                },
                {"name": "seen", "datatype": {"base": "date", "format": "dd/MM/yyyy"}},
                {"name": "age", "datatype": {"base": "date", "format": "d.M.yyyy"}},
            ]
        },
    }
    made = columns(book("csvw.json", csvw))
    assert made["score"].endswith('decimal: ",", missing: ["-"]}')
    assert made["seen"].endswith('date: "%d/%m/%Y"}')
    assert made["age"].endswith('date: "%d.%m.%Y"}')
