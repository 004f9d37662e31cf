"""Documents that are generated stay true; links in the README lead somewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

from explorer.bench import ahead_page, fusion_page, greedy_page, measuring_page, peers_page, portability_page
from explorer.cli import main

REPOSITORY = Path(__file__).resolve().parents[1]


def test_the_table_of_rules_is_what_the_command_prints(capsys):
    assert main(["rules", "--markdown"]) == 0
    printed = capsys.readouterr().out.strip()
    assert (REPOSITORY / "docs" / "rules.md").read_text().strip().endswith(printed), (
        "run `explorer rules --markdown` and put its output into docs/rules.md"
    )


def test_the_tables_of_fusion_are_those_of_the_recorded_run():
    result = json.loads((REPOSITORY / "docs" / "fusion.json").read_text())
    assert (REPOSITORY / "docs" / "fusion.md").read_text() == fusion_page.page(result), (
        "run `python -m explorer.bench.fusion_page docs/fusion.json > docs/fusion.md`"
    )
    assert not result["quick"]
    assert len(result["tables"]) == 25


def test_what_greedy_search_found_is_the_recorded_run():
    result = json.loads((REPOSITORY / "docs" / "beyond_ort.json").read_text())
    assert (REPOSITORY / "docs" / "beyond_ort.md").read_text() == greedy_page.page(result), (
        "run `python -m explorer.bench.greedy_page docs/beyond_ort.json > docs/beyond_ort.md`"
    )
    assert result["geometric_mean_ratio"] <= 0.97
    assert result["slower"] == []


def test_what_looking_ahead_gains_is_the_recorded_run():
    result = json.loads((REPOSITORY / "docs" / "looking_ahead.json").read_text())
    assert (REPOSITORY / "docs" / "looking_ahead.md").read_text() == ahead_page.page(result), (
        "run `python -m explorer.bench.ahead_page docs/looking_ahead.json > docs/looking_ahead.md`"
    )
    rows = [row[way] for row in result["models"].values() for way in ("plain", "scouted")]
    assert all(row["delta"]["verdict"] != "SLOWER" for row in rows)


def test_the_comparison_with_other_optimisers_is_the_recorded_run():
    result = json.loads((REPOSITORY / "docs" / "peers.json").read_text())
    assert (REPOSITORY / "docs" / "peers.md").read_text() == peers_page.page(result), (
        "run `python -m explorer.bench.peers_page docs/peers.json > docs/peers.md`"
    )
    ours = [row for rows in result["models"].values() for tool, row in rows.items() if "explorer" in tool]
    assert ours
    assert all(row["equal"] for row in ours)


def test_how_far_verdicts_can_be_trusted_is_the_recorded_run():
    result = json.loads((REPOSITORY / "docs" / "measuring.json").read_text())
    assert (REPOSITORY / "docs" / "measuring.md").read_text() == measuring_page.page(result), (
        "run `python -m explorer.bench.measuring_page docs/measuring.json > docs/measuring.md`"
    )
    assert result["calibration"]["pairs"] >= 200
    assert result["calibration"]["false_claims"]["high"] < 0.05


def test_whether_optimisations_travel_is_the_recorded_campaign():
    result = json.loads((REPOSITORY / "docs" / "portability.json").read_text())
    assert (REPOSITORY / "docs" / "portability.md").read_text() == portability_page.page(result), (
        "run `python -m explorer.bench.portability_page docs/portability.json > docs/portability.md`"
    )
    own = [c for c in result["cells"] if c["row"] == c["column"]]
    assert len(own) >= 20
    assert all(cell["delta"]["verdict"] != "SLOWER" for cell in own)


def test_links_in_the_readme_exist():
    text = (REPOSITORY / "README.md").read_text()
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert links
    assert [link for link in links if not (REPOSITORY / link).exists()] == []
