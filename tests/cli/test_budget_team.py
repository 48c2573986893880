"""`dpsynth budget revoke | close | policy | refund | export | import`, from end to end."""

from __future__ import annotations

from tests.whole.test_release import killed


def test_revoke_close_and_what_show_and_log_say(dpsynth, people):
    assert dpsynth("budget", "grant", "people", "2").code == 0
    assert dpsynth("release", people()).code == 0
    ran = dpsynth("budget", "revoke", "people")
    assert ran.out == "people is revoked: nothing more may be spent until there is a new grant.\n"
    assert "0 (revoked)" in dpsynth("budget", "show").out
    assert dpsynth("release", "spec.yaml", "--replace").code == 3
    assert dpsynth("budget", "grant", "people", "2").code == 0
    assert dpsynth("release", "spec.yaml", "--replace").code == 0
    assert dpsynth("budget", "close", "people").out == (
        "people is closed: nothing more is released from it.\n"
    )
    ran = dpsynth("release", "spec.yaml", "--replace")
    assert (ran.code, "people is closed" in ran.err) == (3, True)
    log = dpsynth("budget", "log").out
    for said in ("no more until there is a new grant", "no more, for ever", ", by "):
        assert said in log
    assert dpsynth("budget", "show", "people", "--json").json["datasets"][0]["stopped"] == "closed"
    assert dpsynth("budget", "verify").code == 0


def test_rules_are_shown_changed_and_kept(dpsynth, people):
    spec = people(epsilon="2", delta="1e-5")
    assert dpsynth("budget", "init").code == 0
    assert dpsynth("budget", "policy").out == "The ledger has no rules of its own.\n"
    assert dpsynth("budget", "policy", "--most-epsilon", "1").code == 0
    ran = dpsynth("budget", "policy", "--most-delta", "0", "--person", "ann")
    assert ran.out == "everybody: at most epsilon = 1 a release\nann: at most delta = 0\n"
    ran = dpsynth("release", spec)
    assert (ran.code, "allows you at most 1 for one release" in ran.err) == (3, True)
    assert dpsynth("budget", "policy", "--most-epsilon", "any", "--most-delta", "1e-6").code == 0
    ran = dpsynth("release", spec)
    assert (ran.code, "allows you at most 0.000001" in ran.err) == (3, True)
    assert dpsynth("budget", "policy", "--most-delta", "any").code == 0
    assert dpsynth("release", spec).code == 0
    assert dpsynth("budget", "policy", "--most-epsilon", "-1").code == 2
    assert dpsynth("budget", "log").code == 0
    assert dpsynth("budget", "verify").code == 0


def test_a_charge_without_a_row_is_given_back_by_hand_and_one_with_rows_is_not(dpsynth, people, tmp_path):
    people("pmm")
    killed(tmp_path, "answer")
    (line,) = dpsynth("status", "--json").json["under_way"]
    (left,) = (tmp_path / "out").glob(".people.*.partial")
    release = left.name.split(".")[2]
    ran = dpsynth("budget", "refund", release)
    assert (ran.code, "cannot be given back: it is drawn" in ran.err) == (2, True)
    from dpsynth_cli.trusted.ledger.grants import cost_of
    from dpsynth_cli.trusted.ledger.ledger import Ledger

    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.reserve("people", "stray", "people", cost_of(ledger.find(release)[0].payload))
    lines = dpsynth("status", "--json").json["under_way"]
    assert [line["kind"] for line in lines] == ["release", "charge"]
    assert lines[1]["next"] == "unless it is running elsewhere: dpsynth budget refund stray"
    assert dpsynth("budget", "refund", "stray").out == (
        "The charge of stray is given back: no row was read for it.\n"
    )
    assert dpsynth("budget", "refund", "unknown").code == 2
    assert line["kind"] == "release"
    assert dpsynth("budget", "verify").code == 0


def test_a_ledger_moves_and_published_audits_still_verify(dpsynth, people, tmp_path):
    assert dpsynth("release", people()).code == 0
    assert dpsynth("budget", "export", "copy.jsonl").code == 0
    ran = dpsynth("budget", "import", "copy.jsonl", "--ledger", "new.sqlite")
    assert ran.code == 0, ran.err
    assert "Release with this ledger only from now on" in ran.out
    ran = dpsynth("verify", "out/people.audit.json", "--ledger", "new.sqlite")
    assert (ran.code, "an unbroken chain" in ran.out) == (0, True)
    (tmp_path / "copy.jsonl").write_text("x")
    ran = dpsynth("budget", "import", "copy.jsonl", "--ledger", "other.sqlite")
    assert (ran.code, "is not a copy of a ledger" in ran.err) == (4, True)
