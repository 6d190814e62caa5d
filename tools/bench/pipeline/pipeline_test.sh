#!/bin/bash
# Checks the rows of the pipeline benchmark, without a peer and with a script as
# peer.
set -euo pipefail
die() {
  echo "FAILED: $*" >&2
  exit 1
}
readonly PIPELINE=tools/bench/pipeline/pipeline

# A fake PyTorch that answers at once, and does not run ZB-V.
cat >torch.sh <<'END'
#!/bin/bash
while read -r name schedule micro_batches seconds; do
  echo "$name $schedule $micro_batches" >>questions.txt
  case "$schedule" in
    zb_v) echo nan ;;
    *) echo 100000 ;;
  esac
done
END
chmod +x torch.sh

short=(--case=mlp8 --micro_batches=2 --seconds=0.1)
"$PIPELINE" "${short[@]}" --rounds=1 --schedule=1f1b --json >rows.txt
python3 - <<'END' || die "$(cat rows.txt)"
import json

rows = [json.loads(line) for line in open("rows.txt")]
assert [(row["case"], row["ranks"], row["unit"], row["peer"]) for row in rows] == [
    ("mlp8 m=2 1f1b", 2, "ms", None),
    ("mlp8 m=2 1f1b, predicted", 2, "ms", None),
    ("mlp8 m=2 1f1b jitter", 2, "ms", rows[2]["peer"]),
    ("mlp8 m=2 one rank", 1, "ms", None),
    ("mlp8 m=2 one rank, predicted", 1, "ms", None)], rows
assert all(row["bench"] == "pipeline" and row["ours"] > 0 for row in rows), rows
# A prediction is within a factor of 5, even on a busy machine.
assert 0.2 < rows[0]["ours"] / rows[1]["ours"] < 5, rows
# Order of arrival is slower than strict order at most by the anomalies of list
# scheduling.
assert rows[2]["ratio"] > 0.98, rows
END

"$PIPELINE" "${short[@]}" --rounds=2 --schedule=zb_h1,zb_v --json \
  --python=./torch.sh >rows.txt
python3 - <<'END' || die "$(cat rows.txt questions.txt)"
import json

rows = {row["case"]: row for row in map(json.loads, open("rows.txt"))}
assert rows["mlp8 m=2 zb_h1"]["peer"] == 100000, rows
assert rows["mlp8 m=2 zb_h1"]["ratio"] > 1, rows
assert rows["mlp8 m=2 zb_v"]["peer"] is None, rows
assert rows["mlp8 m=2 one rank"]["peer"] is None, rows
asked = open("questions.txt").read().split("\n")
assert asked == 2 * ["mlp8 1f1b 2"] + 2 * ["mlp8 zb_v 2"] + [""], asked
END

"$PIPELINE" "${short[@]}" --rounds=1 --schedule=gpipe >table.txt
grep -Eq '^mlp8 m=2 gpipe +2 +ms .*% of the time of one rank, .*% idle; predicted [0-9.]+ ms' table.txt ||
  die "no row: $(cat table.txt)"
"$PIPELINE" "${short[@]}" --schedule=2f2b 2>err.txt && die "2f2b is a schedule"
grep -q 'must be one of' err.txt || die "it says: $(cat err.txt)"
