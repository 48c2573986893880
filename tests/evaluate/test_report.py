"""The page: whole, escaped, without anything from elsewhere; and looked at by a real browser."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SPEC = """\
dpsynth: 1
name: trips & <b>more
input: trips.csv
output: out/trips.csv
privacy: {epsilon: 1.0, neighbours: add_remove}
mechanism: {name: marginals}
columns:
  "a column with a very long name, longer than any picture is wide":
    {type: continuous, bounds: [-123456.789, 1e12]}
  "<script>alert(1)</script>": {type: nominal, categories: [a label that is long indeed, "<i>b</i>", c]}
  when: {type: datetime, bounds: ["2020-01-01 00:00:00", "2020-12-31 23:59:59"], nullable: true}
  many: {type: nominal, categories: [%s]}
  yes: {type: boolean, nullable: true}
evaluate: {epsilon: 0.3, metrics: [w1, marginals, moments]}
"""


@pytest.fixture
def pages(dpsynth, tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC % ", ".join(f"kind{i}" for i in range(30)))
    long = '"a column with a very long name, longer than any picture is wide"'
    lines = [f"{long},<script>alert(1)</script>,when,many,yes"]
    for i in range(200):
        lines.append(
            f"{i * 4e9},{'c' if i % 3 else '<i>b</i>'},2020-{1 + i % 12:02}-03,kind{i % 30},{i % 5 == 0}"
        )
    (tmp_path / "trips.csv").write_text("\n".join(lines) + "\n")
    ran = dpsynth("release", "spec.yaml")
    assert ran.code == 0, ran.err
    for words in (["out/trips.audit.json"], ["out/trips.audit.json", "--public"]):
        ran = dpsynth("report", *words)
        assert ran.code == 0, ran.err
    return [(tmp_path / f"out/trips.report{kind}.html").read_text() for kind in ("", ".public")]


def test_the_page_says_what_it_must(pages, tmp_path):
    steward, public = pages
    for page in pages:
        for words in ("The guarantee", "In plain words", "2.72", "Where the budget went", "predicted",
                      "paid for", "Pairs of columns", "Receipts"):  # fmt: skip
            assert words in page, words
        assert page.count("<svg") == page.count('role="img" aria-label="') > 10
        assert "&lt;script&gt;" in page
        assert not re.search(r"<script|<i>b|<link|<img|https?://(?!www\.w3\.org/2000/svg)|url\(", page)
    assert "Confidential" in steward
    assert "real rows as black lines" in steward
    assert (tmp_path / "out/trips.report.html").stat().st_mode & 0o077 == 0
    for words in ("Confidential", "real rows", "polyline", "measured", "Utility"):
        assert words not in public, words
    assert str(tmp_path) not in public


def test_without_the_real_table_the_stewards_page_says_so(dpsynth, pages, tmp_path):
    (tmp_path / "trips.csv").unlink()
    assert dpsynth("report", "out/trips.audit.json", "--no-predict", "-o", "again.html").code == 0
    page = (tmp_path / "again.html").read_text()
    assert "The real table is not where it was" in page
    assert "polyline" not in page


def test_what_cannot_be_shown_is_said(dpsynth, pages):
    for words, code, said in (
        (["nothing.json"], 5, "cannot read the audit"),
        (["spec.yaml"], 2, "is not an audit"),
        (["out/trips.audit.public.json", "--real", "trips.csv"], 2, "shows nothing of the real table"),
        (["out/trips.audit.json", "--synthetic", "gone.csv"], 5, "there is no file gone.csv"),
        (["out/trips.audit.json", "-o", "no/such/folder.html"], 5, "cannot write no/such/folder.html"),
    ):
        ran = dpsynth("report", "--no-predict", *words)
        assert (ran.code, said in ran.err) == (code, True), ran.err


LOOK = """<script>
const bad = [];
const over = (r, q) =>
  r.left < q.right - 1 && q.left < r.right - 1 && r.top < q.bottom - 1 && q.top < r.bottom - 1;
const boxes = list =>
  [...list].map(e => [e, e.getBoundingClientRect()]).filter(([e, r]) => r.width && r.height);
for (const svg of document.querySelectorAll("svg")) {
  const box = svg.getBoundingClientRect(), texts = boxes(svg.querySelectorAll("text"));
  texts.forEach(([e, r], i) => {
    if (r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1)
      bad.push("outside: " + e.textContent);
    for (const [f, q] of texts.slice(i + 1))
      if (over(r, q)) bad.push(e.textContent + " over " + f.textContent);
  });
}
for (const [e, r] of boxes(document.querySelectorAll("td, th")))
  if (e.textContent.length > 4 && r.width < 40) bad.push("squeezed: " + e.textContent);
const blocks = boxes(document.querySelectorAll("figure, table, h1, h2, p, ul"));
blocks.forEach(([e, r], i) => blocks.slice(i + 1).forEach(([f, q]) => {
  if (!e.contains(f) && over(r, q)) bad.push("blocks: " + e.tagName + " over " + f.tagName); }));
const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
document.title = JSON.stringify({bad, wide, svgs: document.querySelectorAll("svg").length,
  requests: performance.getEntriesByType("resource").length});
</script></body>"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here: apt-get install chromium to look at the page")
@pytest.mark.parametrize("width", [1050, 420])
def test_in_a_browser_nothing_overlaps_or_is_fetched(pages, tmp_path, width):
    steward, _ = pages
    looked = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", steward).replace("</body>", LOOK)
    (tmp_path / "look.html").write_text(looked)
    ran = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/browser",
         f"--window-size={width},900", "--dump-dom", (tmp_path / "look.html").as_uri()],
        capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    found = re.search(r"<title>(\{.*?\})</title>", ran.stdout)
    assert found, ran.stderr[-500:]
    seen = json.loads(html.unescape(found[1]))
    assert seen["bad"] == []
    assert seen["wide"] <= 0
    assert seen["svgs"] > 10
    assert seen["requests"] == 0
