// Validate(): checks that a table can run to its end.

#include <algorithm>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "pipeline/table/action_rules.h"
#include "pipeline/table/add_gathers.h"
#include "pipeline/table/schedule.h"
#include "pipeline/table/table_cursor.h"
#include "pipeline/table/table_index.h"

namespace troupe::pipeline {
namespace {

// Returns whether the signal is about one bucket.
bool IsOfBucket(SignalKind kind) {
  return kind == SignalKind::kBucketReady ||
         kind == SignalKind::kBucketReleased ||
         kind == SignalKind::kBucketReduced;
}

class Validator {
 public:
  explicit Validator(const StepTable& table) : table_(table), index_(table) {}

  absl::Status Check() {
    TROUPE_RETURN_IF_ERROR(CheckNumbers());
    chunks_ = table_.chunks();
    buckets_ = table_.bucket_counts();
    forwards_.resize(chunks_);
    for (const Action& action : table_.actions) {
      forwards_[action.chunk] += action.kind == ActionKind::kForward;
      trains_ |= BeginsBackward(action.kind);
    }
    micro_batches_ = forwards_[0];
    TROUPE_RETURN_IF_ERROR(CheckPairs());
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      TROUPE_RETURN_IF_ERROR(CheckMicroBatches(chunk));
    }
    TROUPE_RETURN_IF_ERROR(CheckKinds());
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      TROUPE_RETURN_IF_ERROR(CheckBuckets(chunk));
    }
    TROUPE_RETURN_IF_ERROR(CheckNeeds());
    TROUPE_RETURN_IF_ERROR(CheckTurns(table_));
    return CheckRuns();
  }

 private:
  absl::Status Bad(const Action& action, absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule: ", action.ToString(chunks_), " ", what));
  }
  // Returns " of chunk 1" if the table has several chunks.
  std::string Of(int chunk) const {
    return chunks_ > 1 ? absl::StrCat(" of chunk ", chunk) : "";
  }

  // Returns the kinds for which `is_one` returns true and of which the table
  // has an action with this index and chunk.
  template <typename IsOne>
  absl::InlinedVector<const ActionRule*, 2> KindsAt(int index, int chunk,
                                                    const IsOne& is_one) const {
    absl::InlinedVector<const ActionRule*, 2> kinds;
    for (const ActionRule& rule : ActionRules()) {
      if (is_one(rule) && index_.Has(rule.kind, index, chunk)) {
        kinds.push_back(&rule);
      }
    }
    return kinds;
  }

  bool HasPartner(const Action& action, const ActionPartner& partner) const {
    const auto has = [&](const auto& is_one) {
      return !KindsAt(action.index, action.chunk, is_one).empty();
    };
    if (const auto* kind = std::get_if<ActionKind>(&partner.action)) {
      return index_.Has(*kind, action.index, action.chunk);
    }
    if (const auto* signal = std::get_if<SignalKind>(&partner.action)) {
      return has([&](const ActionRule& rule) {
        return rule.gives == *signal && !rule.Has(kMakesParameters);
      });
    }
    return has([&](const ActionRule& rule) {
      return rule.Has(std::get<ActionTrait>(partner.action));
    });
  }

  absl::Status CheckNumbers() const {
    for (const Action& action : table_.actions) {
      if (action.index < 0) {
        return Bad(action, "has a number below 0; count from 0");
      }
      if (action.index > kActionIndexMax) {
        return Bad(action,
                   absl::StrCat("has a number above ", kActionIndexMax,
                                "; use fewer micro-batches or buckets"));
      }
      if (action.chunk < 0 || action.chunk >= kChunksMax) {
        return Bad(action, absl::StrCat("has a chunk that must be from 0 to ",
                                        kChunksMax - 1));
      }
      const int rounds = RoundLimit(RuleOf(action.kind));
      if (action.round > 0 && rounds == 1) {
        return Bad(action,
                   "has a round; leave it out, since only AR has rounds");
      }
      if (action.round < 0 || action.round >= rounds) {
        return Bad(action, absl::StrCat("has a round that must be from 0 to ",
                                        std::max(rounds, kRoundsMax) - 1));
      }
      if (RuleOf(action.kind).scope == ActionScope::kStep &&
          (action.chunk != 0 || action.index != 0)) {
        return Bad(action, "has a number; leave it out, since a step has one");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckPairs() const {
    for (int i = 0; i < static_cast<int>(table_.actions.size()); ++i) {
      const Action& action = table_.actions[i];
      if (index_.Find(action.kind, action.index, action.chunk, action.round) !=
          i) {
        return Bad(action, "is there twice; remove one of them");
      }
      if (action.round > 0 && !index_.Has(action.kind, action.index,
                                          action.chunk, action.round - 1)) {
        return Bad(action, "has no round before it; number rounds from 0");
      }
      for (const ActionPartner& partner : RuleOf(action.kind).partners) {
        if (partner.in ==
            (trains_ ? InTables::kEvaluation : InTables::kTraining)) {
          continue;
        }
        if (!HasPartner(action, partner)) {
          return Bad(action, absl::StrCat(partner.missing, "; add it"));
        }
      }
    }
    return absl::OkStatus();
  }

  // Checks that micro-batches are numbered without gaps, and that each has one
  // backward or none has (evaluation).
  absl::Status CheckMicroBatches(int chunk) const {
    for (int m = 0; m < micro_batches_; ++m) {
      const int forward = index_.Find(ActionKind::kForward, m, chunk);
      if (forward < 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "schedule: micro-batch ", m, " of ", micro_batches_, Of(chunk),
            " has no forward; add ",
            Action{ActionKind::kForward, m, {}, chunk}.ToString(chunks_)));
      }
      const Action& action = table_.actions[forward];
      const std::size_t backwards =
          KindsAt(m, chunk, [](const ActionRule& rule) {
            return rule.Has(kBeginsBackward);
          }).size();
      if (trains_ && backwards == 0) {
        return Bad(action,
                   "has no backward; add one, or remove those of the others");
      }
      if (backwards > 1) {
        return Bad(action, "has two backwards, whole and split; remove one");
      }
    }
    if (forwards_[chunk] <= micro_batches_) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("schedule: chunk ", chunk, " has ", forwards_[chunk],
                     " micro-batches where chunk 0 has ", micro_batches_));
  }

  // Checks that the kinds of actions are those of a training, or those of an
  // evaluation.
  absl::Status CheckKinds() const {
    for (const Action& action : table_.actions) {
      if (MayBeIn(action.kind, trains_)) continue;
      return Bad(action, trains_ ? "is for evaluations, and the table has a "
                                   "backward; remove it"
                                 : "is for training, and the table has no "
                                   "backward; remove it, or add one");
    }
    return absl::OkStatus();
  }

  // Checks that each bucket is reduced once. In an evaluation nothing is.
  absl::Status CheckBuckets(int chunk) const {
    if (!trains_) return absl::OkStatus();
    for (int k = 0; k < buckets_[chunk]; ++k) {
      const absl::InlinedVector<const ActionRule*, 2> reductions =
          KindsAt(k, chunk, [](const ActionRule& rule) {
            return rule.gives == SignalKind::kBucketReduced;
          });
      if (reductions.size() == 1) continue;
      if (reductions.empty()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "schedule: bucket ", k, " of ", buckets_[chunk], Of(chunk),
            " is never reduced; add an AR or RU for it"));
      }
      return absl::InvalidArgumentError(
          absl::StrCat("schedule: bucket ", k, Of(chunk),
                       " is reduced twice, by ", reductions[0]->word,
                       " and by ", reductions[1]->word, "; remove one"));
    }
    return absl::OkStatus();
  }

  // Checks that the table has the actions and buckets that needs name.
  absl::Status CheckNeeds() const {
    const int actions = static_cast<int>(table_.actions.size());
    for (const Action& action : table_.actions) {
      for (const Signal& need : action.needs) {
        const bool of_bucket = IsOfBucket(need.kind);
        const bool chunk = need.chunk == 0 || (of_bucket && need.chunk > 0 &&
                                               need.chunk < chunks_);
        const int count = need.kind == SignalKind::kDone ? actions
                          : !of_bucket                   ? 1
                          : chunk                        ? buckets_[need.chunk]
                                                         : 0;
        const bool round =
            need.round == 0 || (need.kind == SignalKind::kBucketReady &&
                                need.round > 0 && need.round < kRoundsMax);
        if (!chunk || !round || need.id < 0 || need.id >= count) {
          return Bad(action,
                     "needs a signal that nothing gives; correct its needs");
        }
      }
    }
    return absl::OkStatus();
  }

  // Runs the table as if all messages had arrived.
  absl::Status CheckRuns() const {
    std::vector<int> writers(chunks_);  // actions that still write gradients
    for (const Action& action : table_.actions) {
      writers[action.chunk] += EndsBackward(action.kind);
    }
    TableCursor cursor(table_);
    for (int i = 0; i < static_cast<int>(table_.actions.size()); ++i) {
      if (IsReceive(table_.actions[i].kind)) cursor.Finish(i);
    }
    for (int next; (next = cursor.NextRunnable(/*busy=*/false)) >= 0;) {
      const Action& action = table_.actions[next];
      cursor.Start(next);
      cursor.Finish(next);
      if (EndsBackward(action.kind)) {
        const bool last = --writers[action.chunk] == 0;
        for (int k = 0; k < buckets_[action.chunk]; ++k) {
          cursor.GiveGradients(k, action.chunk, action.index, last);
        }
      } else if (const auto given = SignalAtEnd(action, index_)) {
        cursor.Give(*given);
      }
    }
    if (cursor.complete()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule: these actions can never run: ", cursor.Unfinished(),
        "; move or add what they wait for"));
  }

  const StepTable& table_;
  const TableIndex index_;
  int chunks_ = 1;
  int micro_batches_ = 0;
  std::vector<int> buckets_;   // indexed by chunk
  std::vector<int> forwards_;  // indexed by chunk
  bool trains_ = false;
};

}  // namespace

absl::Status Validate(const StepTable& table) {
  return Validator(table).Check();
}

}  // namespace troupe::pipeline
