"""A second judge of tournaments' bundles, written from the published pages alone.

It imports nothing of the engine. What it recomputes: the seal, seeds by lot, every deal key, every match (by
the second judge of records), what each match means for its pairing, the sums of the tables, and the digest. How
formats pair and break ties it leaves to the first judge.

    python -m tests.oracle.tournament_judge FILE…
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

from tests.oracle.judge import Untrue, key_of, lp, mac, need, prk_of
from tests.oracle.judge import judge as judge_record


def judge(bundle: dict) -> list[str]:
    """The untruths of a bundle; none if it is true as far as this judge can tell."""
    found: list[str] = []
    checks = (seal, seeds, records, results, sums, digest)
    for check in checks:
        try:
            check(bundle)
        except Untrue as error:
            found.append(f"{check.__name__}: {error}")
    return found


def canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def prk(bundle: dict) -> bytes:
    told = bundle["tournament"]
    return prk_of(bytes.fromhex(told["secret"]), told["pub"])


def wheels(entrants: list[dict]) -> list[list[str]]:
    return sorted(
        [bot["bot"], bot["wheel"].removeprefix("sha256:")]
        for entrant in entrants
        for bot in entrant["bots"]
    )


def seal(bundle: dict) -> None:
    told = bundle["tournament"]
    committed = hashlib.sha256(lp("dt/commit/v1", told["id"], bytes.fromhex(told["secret"])))
    need(told["commitment"] == committed.hexdigest(), "the secret is not what was committed to")
    pub = json.loads(told["pub"])
    need(canonical(pub) == told["pub"], "pub is not canonical")
    in_time = [entrant for entrant in bundle["entrants"] if not entrant["addendum"]]
    need(pub["entrants"] == wheels(in_time), "pub names other wheels")
    for entrant in bundle["entrants"]:
        if entrant["addendum"]:
            addendum = json.loads(entrant["addendum"])
            need(addendum["entrants"] == wheels([entrant]), "an addendum names other wheels")


def seeds(bundle: dict) -> None:
    started = [entrant for entrant in bundle["entrants"] if entrant["seed"] is not None]
    need(
        sorted(entrant["seed"] for entrant in started) == list(range(1, len(started) + 1)),
        "seeds are not 1, 2, 3 …",
    )
    if bundle["tournament"]["seeding"] == "lot":
        lot = mac(prk(bundle), lp("dt/stage-lot/v1", bundle["tournament"]["id"], 0) + b"\x01")
        drawn = sorted(
            (entrant for entrant in started if not entrant["addendum"]),
            key=lambda entrant: mac(lot, lp("dt/lot/v1", f"seed/{entrant['name']}")),
        )
        for seed, entrant in enumerate(drawn, 1):
            need(entrant["seed"] == seed, f"{entrant['name']} has another seed than its lot")


def records(bundle: dict) -> None:
    told, key = bundle["tournament"], prk(bundle)
    for match_key, record in bundle["records"].items():
        untrue = judge_record(record)
        need(not untrue, f"{match_key}: {untrue}")
        need(record["match_key"] == match_key, f"{match_key} has the record of another match")
        for game in record["games"]:
            for deal in game["deals"]:
                wanted = key_of(key, told["game"], told["id"], match_key, deal["number"])
                need(deal["key"] == wanted.hex(), f"{match_key}: a deal has another key")


def pairings(bundle: dict):
    for stage in bundle["stages"]:
        for published in stage["rounds"]:
            for pairing in published["pairings"]:
                yield stage, pairing


def results(bundle: dict) -> None:
    left = set(bundle["records"])
    for _, pairing in pairings(bundle):
        record, result = bundle["records"].get(pairing["key"]), pairing["result"]
        left.discard(pairing["key"])
        if record is None:
            need(
                pairing["is_bye"]
                or pairing["is_ruled"]
                or result["decided_by"] in {"walkover", "forfeit"},
                f"{pairing['key']} has no record",
            )
            continue
        names = [bundle["entrants"][index]["name"] for index in pairing["entrants"]]
        need(
            [entrant["name"] for entrant in record["entrants"]] == names,
            f"{pairing['key']} was played by others",
        )
        if pairing["is_ruled"]:
            continue
        outcome = record["outcome"]
        need(result["points"] == outcome["points"], f"{pairing['key']} has other points")
        need(result["places"] == outcome["places"], f"{pairing['key']} has other places")
        if result["decided_by"] in {"play", "lot", "fault"}:
            need(
                [Fraction(score) for score in result["scores"]] == scores(outcome["places"]),
                f"{pairing['key']} has other scores",
            )
    need(not left, f"records of no pairing: {sorted(left)}")


def scores(places: list[int]) -> list[Fraction]:
    """(beaten + ½ tied) / (entrants - 1)."""
    return [
        Fraction(
            2 * sum(other > place for other in places)
            + sum(other == place for other in places)
            - 1,
            2 * (len(places) - 1),
        )
        for place in places
    ]


def sums(bundle: dict) -> None:
    for stage in bundle["stages"]:
        points: dict[int, int] = defaultdict(int)
        matches: dict[int, int] = defaultdict(int)
        for published in stage["rounds"]:
            for pairing in published["pairings"]:
                if pairing["result"]["decided_by"] not in {"play", "lot", "fault"}:
                    continue
                for entrant, gained in zip(
                    pairing["entrants"], pairing["result"]["points"], strict=True
                ):
                    points[entrant] += gained
                    matches[entrant] += 1
        for row in stage["standings"]:
            need(
                row["points_difference"] == points[row["entrant"]],
                f"{row['entrant']} has another points difference",
            )
            need(
                row["wins"] + row["ties"] + row["losses"] == row["matches"],
                f"{row['entrant']} has matches without a result",
            )
            need(row["matches"] >= matches[row["entrant"]], f"{row['entrant']} has more matches")


def digest(bundle: dict) -> None:
    document = {key: value for key, value in bundle.items() if key not in {"digest", "ratings"}}
    document["records"] = {key: record["digest"] for key, record in bundle["records"].items()}
    wanted = "sha256:" + hashlib.sha256(canonical(document).encode()).hexdigest()
    need(bundle["digest"] == wanted, f"the digest must be {wanted}")


def main(files: list[str]) -> int:
    untrue = 0
    for name in files:
        data = Path(name).read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        found = judge(json.loads(data))
        print(f"{name}: {'; '.join(found) or 'true'}")
        untrue += bool(found)
    return min(untrue, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
