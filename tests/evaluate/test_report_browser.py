"""The page as a real browser lays it out: wide and narrow, light and dark, with 3, 20 and 300 columns."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import pytest

from tests.evaluate import pages as made

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium here: apt-get install chromium to look at the page"
)

LOOK = """<script>
const bad = [];
const page = document.documentElement, wide = page.clientWidth;
const boxes = list =>
  [...list].map(e => [e, e.getBoundingClientRect()]).filter(([e, r]) => r.width && r.height);
const words = e => (e.tagName + " " + e.textContent.slice(0, 60));
const over = (r, q) =>
  r.left < q.right - 1 && q.left < r.right - 1 && r.top < q.bottom - 1 && q.top < r.bottom - 1;
for (const [e, r] of boxes(document.body.querySelectorAll("*")))
  if (r.left < -1 || r.right > wide + 1) bad.push("beside the page: " + words(e));
const texts = "p, li, td, th, dt, dd, h1, h2, h3, .label, .axis span, pre";
for (const e of document.querySelectorAll(texts))
  if (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline")
    bad.push("wider than its box: " + words(e));
const parents = "main, section, .grid, .two, figure, .bars, .bars li, .axis";
for (const parent of document.querySelectorAll(parents)) {
  const inside = boxes(parent.children);
  inside.forEach(([e, r], i) => inside.slice(i + 1).forEach(([f, q]) => {
    if (over(r, q)) bad.push(words(e) + " over " + words(f)); }));
}
const lines = e => {
  const range = document.createRange();
  range.selectNodeContents(e);
  return new Set([...range.getClientRects()].map(r => Math.round(r.top))).size;
};
for (const e of document.querySelectorAll("td.n, .bars .n > :first-child"))
  if (wide > 600 && lines(e) > 1) bad.push("a number in two lines: " + words(e));
for (const [e, r] of boxes(document.querySelectorAll(".cards td:not(.name):not(.n)")))
  if (wide > 600 && e.textContent.length > 4 && r.width < 40) bad.push("squeezed: " + words(e));
const channel = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const parts = colour => {
  const n = colour.match(/[\\d.]+/g).map(Number);
  return n.length < 4 ? [...n, 1] : n;
};
const ground = e => {
  if (!e) return [255, 255, 255];
  const [r, g, b, a] = parts(getComputedStyle(e).backgroundColor);
  if (a === 1) return [r, g, b];
  const under = ground(e.parentElement);
  return [r, g, b].map((c, i) => a * c + (1 - a) * under[i]);
};
let least = 99;
for (const e of document.querySelectorAll("body *")) {
  if (e.tagName === "SCRIPT") continue;
  if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
  const [x, y] = [light(parts(getComputedStyle(e).color)), light(ground(e))].sort((p, q) => q - p);
  const contrast = (x + 0.05) / (y + 0.05);
  least = Math.min(least, contrast);
  if (contrast < 4.5) bad.push("hard to read (" + contrast.toFixed(1) + "): " + words(e));
}
const seen = {bad: [...new Set(bad)].slice(0, 20), wide: page.scrollWidth - wide, width: wide, least,
  dark: getComputedStyle(document.body).backgroundColor !== "rgb(255, 255, 255)",
  drawings: document.querySelectorAll("svg, .bars").length,
  requests: performance.getEntriesByType("resource").length};
parent.postMessage(JSON.stringify(seen), "*");
</script></body>"""
FRAME = """<!doctype html><title>nothing</title><script>
addEventListener("message", event => { document.title = event.data; });
</script><body style="margin:0">
<iframe src="{page}" style="border:0;width:{width}px;height:900px"></iframe>"""


def looked_at(page: str, folder, width: int, dark: bool) -> dict:
    """What the browser says of the page in a frame of this width: a window may not be so narrow."""
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page).replace("</body>", LOOK)
    media = "@media screen and (prefers-color-scheme: dark)"
    assert media in page
    page = page.replace(media, "@media screen" if dark else "@media not all")
    (folder / "look.html").write_text(page)
    (folder / "frame.html").write_text(
        FRAME.replace("{page}", (folder / "look.html").as_uri()).replace("{width}", str(width))
    )
    ran = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/browser",
         "--allow-file-access-from-files", "--hide-scrollbars", "--virtual-time-budget=20000",
         "--window-size=1200,900", "--dump-dom", (folder / "frame.html").as_uri()],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    found = re.search(r"<title>(\{.*?\})</title>", ran.stdout)
    assert found, ran.stderr[-500:]
    return json.loads(html.unescape(found[1]))


@pytest.mark.parametrize("columns", [3, 20, 300])
def test_in_a_browser_nothing_overlaps_overflows_or_is_hard_to_read(dpsynth, tmp_path, columns):
    made.write(tmp_path, columns)
    for page in made.pages(dpsynth, tmp_path):
        for width, dark in ((1050, False), (360, True)):
            seen = looked_at(page, tmp_path, width, dark)
            assert seen["width"] == width
            assert seen["dark"] is dark
            assert seen["bad"] == []
            assert seen["wide"] <= 0
            assert seen["drawings"] >= min(columns, 40)
            assert seen["requests"] == 0


def test_the_browser_test_would_see_what_is_wrong(dpsynth, tmp_path):
    made.write(tmp_path, 3)
    _, page = made.pages(dpsynth, tmp_path)
    for broken, said in (
        (page.replace("overflow-wrap: anywhere", "white-space: nowrap"), "beside the page"),
        (page.replace("--soft: #555", "--soft: #bbb"), "hard to read"),
        (
            page.replace("h3 { font-size: 1rem; margin: .2rem", "h3 { font-size: 1rem; margin: -4rem"),
            " over ",
        ),
    ):
        assert broken != page
        assert any(said in line for line in looked_at(broken, tmp_path, 360, False)["bad"]), said
