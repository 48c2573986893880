"""The page: whole, escaped, without anything from elsewhere, and public where it says so."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from dpsynth_cli.evaluate.report import style
from tests.evaluate import pages as made

VOID = {"meta", "br", "rect", "polyline"}
VERDICT = {
    "summary": ["Of 3 things that an analyst would rely on, 1 holds, 1 is weaker and 1 is broken."],
    "counts": {"holds": 1, "weaker": 1, "broken": 1},
    "findings": [
        {"kind": "follows", "columns": ["age", "rank"], "state": "broken", "weight": 3.0,
         "words": "rank follows from age: 13 % of the <b>rows</b> break that.",
         "error": 0.13, "real_split": 0.01},
        {"kind": "regression", "columns": ["age"], "state": "weaker", "weight": 0.6,
         "words": "age by all other columns: R2 0.62, really 0.98.", "error": 0.36, "independent": 0.9},
        {"kind": "column", "columns": ["price"], "state": "holds", "weight": 0.0,
         "words": "price is as it was."},
    ],
}  # fmt: skip


class Strict(HTMLParser):
    """Every element is closed in its order; what is said, and with which attributes."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names))
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert tag in VOID, tag
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.said.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.said).split())


@pytest.fixture(params=[3, 20])
def both(request, dpsynth, tmp_path):
    made.write(tmp_path, request.param)
    return made.pages(dpsynth, tmp_path)


def test_the_page_is_well_formed_escaped_and_whole(both):
    for page in both:
        parsed = Strict(page)
        tags = {tag for tag, _ in parsed.tags}
        assert not tags & {"script", "link", "img", "iframe", "object", "i>b", "base", "form"}
        for _, attributes in parsed.tags:
            assert not {name for name in attributes if name.startswith("on")}
            assert attributes.get("href", "#").startswith("#")
            assert "src" not in attributes
        assert not re.search(r"https?:|url\(|@import|<script|<i>b", page)
        assert made.SCRIPT in parsed.text
        assert made.LONG in parsed.text
        assert made.WORD in parsed.text
        assert "\u202e" not in page
        for words in ("How good is it?", "The guarantee", "What holds, and what does not",
                      "Where the budget went", "Columns", "Pairs of columns", "Receipts"):  # fmt: skip
            assert words in parsed.text, words
        drawings = [a for tag, a in parsed.tags if tag == "svg" or a.get("role") == "img"]
        assert all(a["aria-label"] for a in drawings)
        links = {a["href"][1:] for tag, a in parsed.tags if tag == "a"}
        assert links == {a["id"] for _, a in parsed.tags if "id" in a}


def test_nothing_is_wider_than_the_page_by_construction(both):
    sizes = re.compile(r"(?:^|[;{\s])((?:min-)?(?:width|inline-size|flex-basis)):\s*([^;}]+)")
    for tag, attributes in (tag for page in both for tag in Strict(page).tags):
        assert tag == "rect" or not {"width", "height", "nowrap", "size"} & set(attributes)
        for _, size in sizes.findall(attributes.get("style") or ""):
            assert 0 <= float(size.removesuffix("%")) <= 100
        left = re.search(r"left:([\d.]+)%", attributes.get("style") or "")
        assert left is None or 0 <= float(left[1]) <= 100
    for name, size in sizes.findall(style.STYLE):
        fixed = re.fullmatch(r"([\d.]+)rem", size.strip())
        assert fixed is None or float(fixed[1]) <= 12, (name, size)
        assert "px" not in size or size.strip() == "1.6px", (name, size)
    assert re.search(r"body \{[^}]*overflow-wrap: anywhere", style.STYLE)
    kept_whole = re.findall(r"([^{}]*)\{[^}]*white-space: (?:nowrap|pre)\b(?!-)", style.STYLE)
    assert [selector.split("}")[-1].strip() for selector in kept_whole] == [".n"]


def test_the_public_page_has_nothing_of_the_real_rows(both, tmp_path):
    steward, public = both
    assert "Confidential" in steward
    assert "Public: may be published" in public
    assert (tmp_path / "out/trips.report.html").stat().st_mode & 0o077 == 0
    parsed = Strict(public)
    for words in (
        "onfidential",
        "lines are real rows",
        "small: real",
        "(real ",
        "not as declared",
        "trips.csv\n",
    ):
        assert words not in parsed.text, words
    assert not [a for _, a in parsed.tags if a.get("class") == "real"]
    assert str(tmp_path) not in public


def test_what_is_confidential_in_an_audit_never_reaches_the_public_page(dpsynth, tmp_path):
    made.write(tmp_path, 3, metrics="quick")
    before = made.pages(dpsynth, tmp_path)[1]
    audit = json.loads((tmp_path / "out/trips.audit.json").read_text())
    audit["utility"]["verdict"] = VERDICT
    audit["problems"]["warnings"] = ["much of it"]
    (tmp_path / "out/trips.audit.json").write_text(json.dumps(audit))
    assert dpsynth("report", "out/trips.audit.json", "--public").code == 0
    assert (tmp_path / "out/trips.report.public.html").read_text() == before
    # Nor if somebody marks it publishable by hand and leaves it in.
    (tmp_path / "out/trips.audit.json").write_text(json.dumps(audit | {"publishable": True}))
    assert dpsynth("report", "out/trips.audit.json", "-o", "by_hand.html").code == 0
    page = (tmp_path / "by_hand.html").read_text()
    assert page == before


def test_the_same_files_give_the_same_bytes(dpsynth, tmp_path):
    made.write(tmp_path, 3)
    first = made.pages(dpsynth, tmp_path)
    for words in (["out/trips.audit.json"], ["out/trips.audit.public.json"]):
        assert dpsynth("report", *words).code == 0
    assert [(tmp_path / f"out/trips.report{kind}.html").read_text() for kind in ("", ".public")] == list(
        first
    )


def test_the_public_page_leads_with_paid_errors_or_says_that_there_are_none(dpsynth, tmp_path):
    made.write(tmp_path, 3)
    public = Strict(made.pages(dpsynth, tmp_path)[1]).text
    lead = public.index("Measured and paid for")
    assert lead < public.index("The guarantee", lead)
    assert "Epsilon 0.3 of the budget was spent" in public
    assert re.search(
        r"For a column to be as in the real table, \S+ % ± \S+ % of the rows would have to", public
    )
    made.write(tmp_path, 3, paid="")
    public = Strict(made.pages(dpsynth, tmp_path)[1]).text
    assert "No error was measured publicly." in public
    for words in ("paid for:", "predicted", "Errors", "would have to change"):
        assert words not in public, words


def with_verdict(audit):
    audit["utility"] = {"verdict": VERDICT, "metrics": {}, "confidential": True}


def test_the_verdict_comes_first_and_worst_first(dpsynth, tmp_path):
    made.write(tmp_path, 3)
    made.pages(dpsynth, tmp_path)
    audit = json.loads((tmp_path / "out/trips.audit.json").read_text())
    with_verdict(audit)
    (tmp_path / "out/trips.audit.json").write_text(json.dumps(audit))
    assert dpsynth("report", "out/trips.audit.json").code == 0
    page = (tmp_path / "out/trips.report.html").read_text()
    text = Strict(page).text
    order = ["How good is it?", "Of 3 things", "1 broken", "1 weaker", "1 hold", "the <b>rows</b> break",
             "really 0.98", "The guarantee", "What does not hold, worst first", "the <b>rows</b> break",
             "What holds", "Columns by themselves", "price"]  # fmt: skip
    at = text.index("Receipts: check")  # past the contents
    for words in order:
        at = text.index(words, at)
    assert "(error 0.13; of half of the real rows 0.01)" in text
    assert '<li class="broken">' in page


def test_junk_is_red_past_five_percent_for_the_steward_alone(dpsynth, tmp_path):
    made.write(tmp_path, 10)
    steward, public = made.pages(dpsynth, tmp_path)
    red = re.findall(r'<tr class="much"><td class="name"[^>]*>([^<]*)', steward)
    assert red == ["mostly amounts"]
    assert "currency sign" in Strict(steward).text
    assert re.search(r"66\.\d\s% — much", steward)
    for words in ("— much", "currency", "ragged"):
        assert words not in Strict(public).text
    assert 'class="much' not in public
    # At 5 % and below it stands there, but not in red.
    audit = json.loads((tmp_path / "out/trips.audit.json").read_text())
    audit["problems"]["columns"]["mostly amounts"]["unparseable"] = 20
    (tmp_path / "out/trips.audit.json").write_text(json.dumps(audit))
    assert dpsynth("report", "out/trips.audit.json").code == 0
    page = (tmp_path / "out/trips.report.html").read_text()
    assert '<tr class="much">' not in page
    assert re.search(r"<td[^>]*>5\s%</td></tr>", page)


def test_the_guarantee_in_plain_words(both):
    for page in both:
        text = Strict(page).text
        assert "odds that it was there change by a factor of at most 2.72 (e^1), up or down" in text
        assert "1 % 0.37 % 2.67 %" in text  # 0.01 e / (0.99 + 0.01 e)
        assert "10 % 3.93 % 23.2 %" in text
        assert "1 of 100 2.72 of 100 1 of 100" in text
        assert "It protects one row." in text


def test_a_weak_promise_is_called_weak(dpsynth, tmp_path):
    for epsilon, words in (
        ("0.5", "little more than by guessing"),
        ("3", "clearly better"),
        ("12", "is weak"),
    ):
        made.write(tmp_path, 3, paid="")
        spec = json.loads((tmp_path / "spec.yaml").read_text())
        spec["privacy"]["epsilon"] = epsilon
        (tmp_path / "spec.yaml").write_text(json.dumps(spec))
        assert words in Strict(made.pages(dpsynth, tmp_path)[1]).text


def test_receipts_name_the_signature_and_how_to_check_it(dpsynth, tmp_path):
    made.write(tmp_path, 3)
    assert "The release is not signed." in made.pages(dpsynth, tmp_path)[1]
    assert dpsynth("key", "init", "our.pem").code == 0
    assert dpsynth("key", "sign", "out/trips.audit.json", "--key", "our.pem").code == 0
    assert dpsynth("report", "out/trips.audit.public.json").code == 0
    page = (tmp_path / "out/trips.report.public.html").read_text()
    envelope = json.loads((tmp_path / "out/trips.intoto.jsonl").read_text())
    audit = json.loads((tmp_path / "out/trips.audit.public.json").read_text())
    assert "dpsynth verify trips.audit.public.json --key PUBLISHER.pub" in page
    for hash in (
        envelope["signatures"][0]["keyid"],
        audit["output"]["sha256"],
        audit["transcript"]["sha256"],
    ):
        assert hash in page


def test_without_the_real_table_the_stewards_page_says_so(dpsynth, tmp_path):
    made.write(tmp_path, 3)
    made.pages(dpsynth, tmp_path)
    (tmp_path / "trips.csv").unlink()
    assert dpsynth("report", "out/trips.audit.json", "-o", "again.html").code == 0
    page = (tmp_path / "again.html").read_text()
    assert "The real table is not where it was" in page
    assert "polyline" not in page


def test_what_cannot_be_shown_is_said(dpsynth, tmp_path):
    made.write(tmp_path, 3)
    made.pages(dpsynth, tmp_path)
    for words, code, message in (
        (["nothing.json"], 5, "cannot read the audit"),
        (["trips.csv"], 2, "is not an audit"),
        (["out/trips.audit.public.json", "--real", "trips.csv"], 2, "shows nothing of the real table"),
        (["out/trips.audit.json", "--synthetic", "gone.csv"], 5, "there is no file gone.csv"),
        (["out/trips.audit.json", "-o", "no/such/folder.html"], 5, "cannot write no/such/folder.html"),
    ):
        ran = dpsynth("report", *words)
        assert (ran.code, message in ran.err) == (code, True), ran.err


def test_missing_values_are_apart(both):
    steward, public = both
    assert re.search(r"Missing: 1?\d(\.\d)?\s% of the rows \(real 1?\d", steward)
    assert re.search(r"Missing: [\d.]+\s% of the rows</p>", public)
    assert "(missing)</span>" not in steward
