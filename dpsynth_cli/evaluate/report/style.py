"""The page's CSS. Screens may be dark, narrow or both; paper is white, and as wide as it is.

Long words break anywhere, so that no text makes the page wider; only numbers (class n) stay whole. Meaning is
never in a colour alone.
"""

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --soft: #555; --line: #cfd3d8; --ground: #fff;
  --panel: #f4f6f8; --synthetic: #4a9bd4; --real: #111; --link: #0b57a4; --good: #14693f; --fair: #8a5a00;
  --bad: #b3140a; --good-ground: #e5f4ec; --fair-ground: #fdf2da; --bad-ground: #fde8e6;
  --more: 0, 114, 178; --less: 213, 94, 0; --heat: 0, 114, 178; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --soft: #b0b4ba; --line: #454a52;
  --ground: #15171a; --panel: #1f2328; --synthetic: #3f86bd; --real: #fff; --link: #8ec5f5; --good: #7fd6a8;
  --fair: #f0c36a; --bad: #ff9a90; --good-ground: #12301f; --fair-ground: #37290a; --bad-ground: #45130e;
  --more: 86, 160, 220; --less: 230, 120, 40; --heat: 86, 160, 220; } }
* { box-sizing: border-box; min-width: 0; }
html { -webkit-text-size-adjust: 100%; }
body { font: 1rem/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; color: var(--ink);
  background: var(--ground); max-width: 62rem; margin: 0 auto; padding: 1.2rem 1rem 3rem;
  overflow-wrap: anywhere; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: .3rem 0; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 .7rem; padding-bottom: .2rem; border-bottom: 2px solid var(--line); }
h3 { font-size: 1rem; margin: .2rem 0 .4rem; }
h3 small, .small { color: var(--soft); font-size: .87rem; font-weight: 400; }
p, ul, ol, dl { margin: .5rem 0; } ul, ol { padding-left: 1.3rem; } li { margin: .25rem 0; }
a { color: var(--link); }
nav { margin: .8rem 0; font-size: .95rem; } nav a { display: inline-block; margin-right: 1rem; }
code { font: .87rem ui-monospace, "Cascadia Mono", Menlo, monospace; word-break: break-all; }
pre { white-space: pre-wrap; background: var(--panel); padding: .6rem .8rem; border-radius: .3rem; }
.mark { display: inline-block; border: 2px solid; padding: .1rem .7rem; font-weight: 700; }
.public { color: var(--good); } .confidential { color: var(--bad); }
.lead { font-size: 1.15rem; }
.box { background: var(--panel); border-left: .3rem solid var(--line); padding: .5rem 1rem; margin: .8rem 0; }
.box.broken, .box.much { background: var(--bad-ground); border-color: var(--bad); }
.box.weaker { background: var(--fair-ground); border-color: var(--fair); }
.box.holds { background: var(--good-ground); border-color: var(--good); }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: 0 1.5rem; }
dl.facts { display: block; } dl.facts div { display: grid; grid-template-columns: minmax(7rem, 12rem) 1fr;
  gap: .2rem 1rem; padding: .2rem 0; border-bottom: 1px solid var(--line); }
dt { color: var(--soft); } dd { margin: 0; } dl.facts.long dd { font: .87rem ui-monospace, Menlo, monospace; }
table { border-collapse: collapse; width: 100%; margin: .7rem 0; }
th, td { padding: .25rem .6rem .25rem 0; text-align: left; border-bottom: 1px solid var(--line);
  vertical-align: top; }
.cards { overflow-wrap: break-word; } .name { overflow-wrap: anywhere; }
th { color: var(--soft); font-size: .87rem; font-weight: 600; vertical-align: bottom; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th.n { white-space: normal; }
tr.much td { color: var(--bad); font-weight: 600; background: var(--bad-ground); }
.counts { display: flex; flex-wrap: wrap; gap: .6rem; padding: 0; list-style: none; }
.counts li, .state { border: 1px solid; border-radius: 1rem; padding: 0 .7rem; font-weight: 600; }
.state { font-size: .8rem; }
.broken > .state, .counts .broken, td.broken { color: var(--bad); background: var(--bad-ground); }
.weaker > .state, .counts .weaker, td.weaker { color: var(--fair); background: var(--fair-ground); }
.holds > .state, .counts .holds, td.holds { color: var(--good); background: var(--good-ground); }
.findings { list-style: none; padding: 0; } .findings li { padding: .35rem 0;
  border-bottom: 1px solid var(--line); break-inside: avoid; }
.divided { display: flex; height: 2.2rem; border-radius: .2rem; overflow: hidden; }
.divided span { display: flex; align-items: center; justify-content: center; border-right: 1px solid #fff; }
.divided b { background: #fff; color: #111; border-radius: 50%; width: 1.4rem; height: 1.4rem;
  font-size: .8rem; line-height: 1.4rem; text-align: center; flex: none; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr));
  gap: 1.2rem 1.6rem; }
figure { margin: 0; break-inside: avoid; border-top: 1px solid var(--line); padding-top: .4rem; }
svg { display: block; width: 100%; height: 6.5rem; border-bottom: 1px solid var(--ink); }
.synthetic { fill: var(--synthetic); } .real { fill: none; stroke: var(--real); stroke-width: 1.6px;
  vector-effect: non-scaling-stroke; }
.axis { display: flex; justify-content: space-between; gap: .5rem; font-size: .82rem; color: var(--soft); }
.axis span { max-width: 32%; } .axis span:nth-child(2) { text-align: center; }
.axis span:last-child { text-align: right; }
.bars { list-style: none; padding: 0; margin: .2rem 0; font-size: .87rem; }
.bars li { display: grid; grid-template-columns: minmax(4rem, 38%) 1fr auto; gap: .5rem; align-items: center;
  margin: .15rem 0; }
.label { line-height: 1.25; unicode-bidi: isolate; } .bars small { display: block; color: var(--soft); }
.track { position: relative; display: block; height: .95rem; }
.track i { position: absolute; left: 0; top: 0; bottom: 0; background: var(--synthetic); }
.track b { position: absolute; top: -.12rem; bottom: -.12rem; border-left: 3px solid var(--real); }
.quantiles { font-size: .85rem; margin: .3rem 0; width: auto; }
.quantiles th { overflow-wrap: break-word; } .quantiles td, .quantiles th { padding-right: 1rem; }
.cross { table-layout: fixed; font-size: .84rem; } .cross th { font-size: .8rem; }
.cross tr > :first-child { width: 26%; }
.cross td { text-align: right; padding: .2rem .3rem; font-variant-numeric: tabular-nums;
  border: 1px solid var(--line); }
.cross th { padding: .2rem .3rem .2rem 0; } .cross th.n { white-space: normal; }
.cross small { display: block; color: inherit; }
@media screen and (max-width: 34rem) {
  body { padding: .8rem .8rem 2rem; } h1 { font-size: 1.45rem; }
  dl.facts div { grid-template-columns: 1fr; gap: 0; }
  .cards thead { display: none; }
  .cards tr { display: block; border-bottom: 2px solid var(--line); padding: .3rem 0; }
  .cards td { display: flex; gap: 1rem; justify-content: space-between; border: 0; padding: .05rem 0;
    text-align: right; white-space: normal; overflow-wrap: anywhere; }
  .cards td::before { content: attr(data-label); flex: 0 0 45%; color: var(--soft); text-align: left;
    overflow-wrap: break-word; }
  .cards td.name:first-child { display: block; text-align: left; font-weight: 600; }
  .cards td.name:first-child::before { content: none; }
  .quantiles, .cross { font-size: .74rem; } }
@media print { @page { margin: 14mm; } nav { display: none; }
  body { padding: 0; max-width: none; font-size: 10pt; }
  h2, h3 { break-after: avoid; } tr, .box { break-inside: avoid; }
  .grid { display: block; columns: 2; column-gap: 8mm; } p:has(+ table) { break-after: avoid; }
  figure { margin-bottom: 5mm; } a { color: inherit; text-decoration: none; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""
