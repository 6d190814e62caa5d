#!/bin/bash
# Checks the rows of the nn benchmark, without a peer and with a script as peer.
set -euo pipefail
die() {
  echo "FAILED: $*" >&2
  exit 1
}
readonly NN=tools/bench/nn/nn

# A fake PyTorch that answers at once: a fixed number of steps per second in each
# mode, and "nan" in one that it does not run.
cat >torch.sh <<'END'
#!/bin/bash
case "$*" in
  *--once=memory_growth*) echo 1000 && exit ;;
esac
while read -r name precision mode seconds; do
  echo "$2 $name $precision $mode" >>questions.txt
  case "$mode" in
    eager) echo 10 ;;
    channels_last) echo nan ;;
    compile) echo 20 ;;
  esac
done
END
chmod +x torch.sh

"$NN" --case=toy_mlp --seconds=0.1 --rounds=2 --breakdown --json >rows.txt
python3 - <<'END' || die "$(cat rows.txt)"
import json

rows = [json.loads(line) for line in open("rows.txt")]
timed = [row for row in rows if row["unit"] != "of step"]
assert [(row["case"], row["ranks"], row["unit"]) for row in timed] == [
    (case, ranks, unit) for case in ("toy_mlp f32", "toy_mlp bf16")
    for ranks, unit in ((1, "steps/s"), (2, "steps/s"), (2, "x 1 rank"))], timed
for row in timed:
    assert list(row)[:7] == ["bench", "case", "ranks", "unit", "ours", "peer",
                             "ratio"], row
    assert row["bench"] == "nn" and row["ours"] > 0 and row["rounds"] == 2, row
    assert row["peer"] is None and row["ratio"] is None, row
    if row["unit"] == "steps/s":
        assert row["gflops"] > 0 and row["of_peak"] > 0, row
# The parts of a step add up.
for precision in ("f32", "bf16"):
    parts = {row["case"]: row["ours"] for row in rows
             if row["unit"] == "of step" and row["ranks"] == 1}
    label = "toy_mlp " + precision
    whole = sum(parts["%s %s" % (label, part)] for part in (
        "at the peak", "slower products", "other ops", "outside ops"))
    assert abs(whole - 1) < 1e-6, parts
    assert parts[label + " LinearForward"] > 0, parts
    # So do the parts of the time that two ranks take beyond one.
    parts = {row["case"]: row["ours"] for row in rows
             if row["unit"] == "of step" and row["ranks"] == 2}
    rest = sum(parts["%s longer %s" % (label, part)]
               for part in ("products", "other ops", "outside ops"))
    assert abs(parts[label + " longer"] - rest) < 1e-6, parts
END

"$NN" --case=toy_cnn --precision=f32 --seconds=0.1 --rounds=2 --memory --json \
  --python=./torch.sh >rows.txt
python3 - <<'END' || die "$(cat rows.txt questions.txt)"
import json

rows = {(row["case"], row["ranks"], row["unit"]): row
        for row in map(json.loads, open("rows.txt"))}
one = rows["toy_cnn f32", 1, "steps/s"]
assert one["peer"] == 20 and one["ratio"] > 0, one
assert one["peer_eager"] == 10 and one["peer_compile"] == 20, one
assert "peer_channels_last" not in one, one
assert rows["toy_cnn f32", 2, "steps/s"]["peer"] == 20, rows
assert rows["toy_cnn f32", 2, "x 1 rank"]["peer"] == 1, rows
memory = rows["peak_memory toy_cnn f32", 1, "MiB"]
assert 1 < memory["ours"] < 500 and memory["peer"] == 1000, memory
assert len(rows) == 4, rows
# A mode that does not run is measured once; two ranks use the best mode.
asked = [line.split() for line in open("questions.txt")]
modes = [(line[0], line[3]) for line in asked]
assert modes == [
    ("--ranks=1", "eager"), ("--ranks=1", "compile"),
    ("--ranks=1", "channels_last"), ("--ranks=2", "compile"),
    ("--ranks=1", "eager"), ("--ranks=1", "compile"),
    ("--ranks=2", "compile")], modes
END

# Without --json it prints a table.
"$NN" --case=toy_mlp --precision=f32 --ranks=1 --seconds=0.1 --rounds=1 \
  --python=./torch.sh >table.txt
grep -Eq '^toy_mlp f32 +1 +steps/s +[0-9.]+ +20.00 +[0-9.]+  .* GFLOP/s, .* of the (f32 )?peak.*; torch [0-9.e-]*: compile 20, eager 10$' \
  table.txt || die "no row: $(cat table.txt)"
grep -q 'A ratio above 1' table.txt || die "it says: $(cat table.txt)"

# A case that does not run is reported, and the next one runs.
code=0
"$NN" --case=toy_gpt,toy_mlp --precision=f32 --ranks=1 --seconds=0.1 \
  --rounds=1 --json >rows.txt 2>err.txt || code=$?
((code == 1)) || die "exit code $code"
grep -q 'there is no case toy_gpt' err.txt || die "it says: $(cat err.txt)"
grep -q '"toy_mlp f32"' rows.txt || die "toy_mlp did not run"
"$NN" --precision=f8 2>err.txt && die "f8 is a precision"
grep -q 'give f32, bf16' err.txt || die "it says: $(cat err.txt)"
"$NN" --ranks=0 2>err.txt && die "there are 0 ranks"
grep -q 'numbers from 1' err.txt || die "it says: $(cat err.txt)"
"$NN" --help >help.txt || true
grep -q -e '--breakdown' help.txt || die "the help says: $(cat help.txt)"
