#!/bin/bash
# Checks the rows of the benchmark of generation: alone, with a script as peer,
# and, if TROUPE_PYTHON has transformers, with Hugging Face.
set -euo pipefail
die() {
  echo "FAILED: $*" >&2
  exit 1
}
readonly GENERATE=tools/bench/generate/generate

# A fake peer of one token a second.
cat >peer.sh <<'END'
#!/bin/bash
while read -r name texts prompt tokens; do
  echo "$name $texts $prompt $tokens" >>questions.txt
  echo $((texts * tokens))
done
END
chmod +x peer.sh

short=(--case=char_gpt --prompt=5 --tokens=6 --json)
"$GENERATE" "${short[@]}" --texts=1,3 --rounds=2 --python=./peer.sh >rows.txt
python3 - <<'END' || die "$(cat rows.txt questions.txt)"
import json

rows = [json.loads(line) for line in open("rows.txt")]
assert [row["case"] for row in rows] == ["char_gpt texts=1", "char_gpt texts=3"], rows
for row in rows:
    assert row["bench"] == "generate" and row["unit"] == "tokens/s", row
    assert row["peer"] == 1 and row["ratio"] == row["ours"] > 1, row
    assert row["first_step_ms"] > 0 and row["last_step_ms"] > 0, row
asked = open("questions.txt").read().split("\n")
assert asked == 2 * ["char_gpt 1 5 6"] + 2 * ["char_gpt 3 5 6"] + [""], asked
END

"$GENERATE" "${short[@]}" --texts=2 --rounds=1 --nojson >table.txt
grep -Eq '^char_gpt texts=2 .*a step: [0-9.]+ ms after the prompt, [0-9.]+ ms at the end' \
  table.txt || die "no row: $(cat table.txt)"

"$GENERATE" --case=gpt9 2>err.txt && die "gpt9 is a case"
grep -q 'give char_gpt or gpt2' err.txt || die "it says: $(cat err.txt)"
"$GENERATE" "${short[@]}" --texts=1,none 2>err.txt && die "none is a number"
grep -q 'give numbers from 1 on' err.txt || die "it says: $(cat err.txt)"
"$GENERATE" --tokens=3 2>err.txt && die "3 tokens are measured"
grep -q -- '--tokens is 3; it must be at least 4' err.txt ||
  die "it says: $(cat err.txt)"

readonly PYTHON=${TROUPE_PYTHON:-python3}
if ! "$PYTHON" -c 'import torch, transformers' 2>/dev/null; then
  echo "SKIPPED beside Hugging Face: $PYTHON has no transformers; set TROUPE_PYTHON"
  exit 0
fi
"$GENERATE" "${short[@]}" --texts=2 --rounds=1 \
  --python="$(command -v "$PYTHON")" >rows.txt
grep -q '"peer":[0-9]' rows.txt || die "no peer: $(cat rows.txt)"
