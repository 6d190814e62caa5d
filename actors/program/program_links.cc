#include "actors/program/program_links.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "actors/cluster/rendezvous.h"
#include "actors/setup/roster.h"
#include "base/check.h"
#include "comm/fabric_store.h"

namespace troupe::actors {
namespace {

// Parcels of this channel say how ranks have ended: "returned 3",
// "failed 3 CODE MESSAGE". "done": no more ends will come; "bye": the sender
// has the "done" of all.
constexpr std::uint32_t kEndChannel = 1;
// Parcels of this channel carry the ids of groups that NCCL makes.
constexpr std::uint32_t kIdChannel = 2;
constexpr char kReturned[] = "returned";
constexpr char kFailed[] = "failed";
constexpr char kDone[] = "done";
constexpr char kBye[] = "bye";

// Time between two looks for waits that no rank will end. A wait is ended after
// two of them.
constexpr absl::Duration kLook = absl::Milliseconds(400);
// Time for which a process stays for reports of others, after a failure or
// after all ranks have ended. Longer only if one of them stands still.
constexpr absl::Duration kFarewell = absl::Seconds(5);

struct RankEnd {
  int rank = -1;
  absl::Status status;
};

// Reads words about a rank. `roster`: the rank must be one of process `from`.
absl::StatusOr<RankEnd> ReadEnd(absl::string_view words, const Roster& roster,
                                int from) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(words, absl::MaxSplits(' ', 3));
  RankEnd end;
  int code = 0;
  const bool failed = parts[0] == kFailed;
  if ((!failed && parts[0] != kReturned) || parts.size() != (failed ? 4 : 2) ||
      !absl::SimpleAtoi(parts[1], &end.rank) || end.rank < 0 ||
      end.rank >= roster.ranks() || roster.ProcessOf(end.rank) != from ||
      (failed && (!absl::SimpleAtoi(parts[2], &code) || code == 0))) {
    return absl::InvalidArgumentError(absl::StrCat(
        roster.Describe(from), " has sent words that are no end of a rank"));
  }
  if (failed) {
    end.status = absl::Status(static_cast<absl::StatusCode>(code), parts[3]);
  }
  return end;
}

}  // namespace

struct ProgramLinks::Shared {
  Shared(Roster all, int own)
      : roster(std::move(all)),
        process(own),
        done(roster.processes()),
        bye(roster.processes()) {
    done[process] = bye[process] = true;
  }

  bool AllDone() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return All(done);
  }
  bool AllBye() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return All(bye); }
  static bool All(const std::vector<bool>& said) {
    return std::find(said.begin(), said.end(), false) == said.end();
  }
  ProgramContextPtr Context() ABSL_LOCKS_EXCLUDED(mutex) {
    absl::MutexLock lock(&mutex);
    return context.lock();
  }
  // Ends the ranks of a process that is lost.
  void OnLost(int lost_process, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex);

  const Roster roster;
  const int process;
  absl::Mutex mutex;
  std::weak_ptr<ProgramContext> context ABSL_GUARDED_BY(mutex);
  // Loss of a process before the context was there.
  absl::Status lost ABSL_GUARDED_BY(mutex);
  // Indexed by process: whether it has said so, or is lost.
  std::vector<bool> done ABSL_GUARDED_BY(mutex);
  std::vector<bool> bye ABSL_GUARDED_BY(mutex);
};

void ProgramLinks::Shared::OnLost(int lost_process, const absl::Status& why) {
  ProgramContextPtr running;
  {
    absl::MutexLock lock(&mutex);
    bye[lost_process] = true;
    if (done[lost_process]) return;  // it has ended as it should
    done[lost_process] = true;
    running = context.lock();
    if (running == nullptr) lost.Update(why);
  }
  if (running == nullptr) return;
  // The fabric must not be used here: it ends the groups of the lost process
  // itself, and Wait() the others.
  running->outcome.Fail(why);
  for (int rank = roster.FirstRankOf(lost_process);
       rank < roster.FirstRankOf(lost_process + 1); ++rank) {
    running->outcome.End(rank);
  }
}

// Receives how the ranks of the other processes have ended.
class ProgramLinks::EndReceiver : public comm::ParcelHandler {
 public:
  explicit EndReceiver(std::shared_ptr<Shared> shared)
      : shared_(std::move(shared)) {}

  absl::StatusOr<nn::Tensor> Receive(const comm::Parcel& parcel) override {
    if (parcel.header != kDone && parcel.header != kBye) {
      TROUPE_RETURN_IF_ERROR(
          ReadEnd(parcel.header, shared_->roster, parcel.from).status());
    }
    return nn::Tensor();
  }

  void Complete(const comm::Parcel& parcel, const nn::Tensor&) override {
    if (parcel.header == kDone || parcel.header == kBye) {
      absl::MutexLock lock(&shared_->mutex);
      shared_->done[parcel.from] = true;
      if (parcel.header == kBye) shared_->bye[parcel.from] = true;
      return;
    }
    const absl::StatusOr<RankEnd> end =
        ReadEnd(parcel.header, shared_->roster, parcel.from);
    const ProgramContextPtr context = shared_->Context();
    if (!end.ok() || context == nullptr) return;
    if (end->status.ok()) {
      context->returned[end->rank] = true;
    } else {
      context->outcome.Fail(end->status);
      context->groups.Abort(end->status);
    }
    context->outcome.End(end->rank);
  }

 private:
  const std::shared_ptr<Shared> shared_;
};

ProgramLinks::~ProgramLinks() {
  if (fabric_ == nullptr) return;  // Open() has failed
  fabric_->SetParcelHandler(kEndChannel, nullptr);
}

absl::StatusOr<std::unique_ptr<ProgramLinks>> ProgramLinks::Open(
    const ProgramSpec& spec, bool by_nccl) {
  const ClusterOptions& cluster = *spec.cluster;
  TROUPE_ASSIGN_OR_RETURN(
      MetProcesses met,
      MeetProcesses(
          cluster,
          absl::StrCat("number of ranks = ", spec.ranks, "\nreduction_order = ",
                       by_nccl ? "any" : "tree", "\n", cluster.agreement)));
  if (met.roster.ranks() != spec.ranks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the processes have ", met.roster.ranks(),
        " ranks together where the program has ", spec.ranks,
        "; ClusterOptions.ranks is the number of each process's own"));
  }
  const auto shared =
      std::make_shared<Shared>(std::move(met.roster), cluster.process);
  comm::FabricOptions fabric;
  fabric.process = cluster.process;
  fabric.process_of = shared->roster.ProcessesOfRanks();
  fabric.generation = static_cast<std::uint32_t>(met.generation);
  fabric.links = std::move(met.links);
  for (int p = 0; p < shared->roster.processes(); ++p) {
    fabric.names.push_back(shared->roster.Describe(p));
  }
  fabric.on_lost = [shared](int process, const absl::Status& why) {
    shared->OnLost(process, why);
  };
  std::unique_ptr<ProgramLinks> links(new ProgramLinks(shared));
  TROUPE_ASSIGN_OR_RETURN(links->fabric_,
                          comm::Fabric::Make(std::move(fabric)));
  // The roster lives as long as what shares it.
  const std::shared_ptr<const Roster> roster(shared, &shared->roster);
  links->make_group_ = GroupsOver(links->fabric_, roster, spec.device,
                                  LocalGroupsBy(GroupsOn(spec.device)));
  if (!by_nccl) return links;
  links->by_nccl_ = true;
  NcclGroups how;
  how.store = std::make_shared<comm::FabricStore>(links->fabric_, kIdChannel);
  // A strand that waited for an id would not drive its device meanwhile, which
  // may be making the group before.
  how.makes_later = true;
  how.generation = met.generation;
  how.timeout = spec.timeout;
  links->make_group_ = GroupsByNcclOver(roster, cluster.process, std::move(how),
                                        std::move(links->make_group_));
  return links;
}

void ProgramLinks::Attach(const ProgramContextPtr& context) {
  context->first = shared_->roster.FirstRankOf(shared_->process);
  context->last = shared_->roster.FirstRankOf(shared_->process + 1);
  context->ranks_before = RanksBefore(shared_->roster, shared_->process);
  context->on_end = [this](int rank, const absl::Status& status) {
    std::string words =
        status.ok() ? absl::StrCat(kReturned, " ", rank)
                    : absl::StrCat(kFailed, " ", rank, " ", status.raw_code(),
                                   " ", status.message());
    if (words.size() > comm::kParcelHeaderBytesMax) {
      words.resize(comm::kParcelHeaderBytesMax);
    }
    Say(words);
  };
  if (by_nccl_) context->groups.KeepUntilTheEnd();
  {
    absl::MutexLock lock(&shared_->mutex);
    shared_->context = context;
    context->outcome.Fail(shared_->lost);
  }
  // Parcels that came before are kept for it.
  fabric_->SetParcelHandler(kEndChannel,
                            std::make_shared<EndReceiver>(shared_));
}

void ProgramLinks::Say(const std::string& words) {
  for (int p = 0; p < shared_->roster.processes(); ++p) {
    if (p == shared_->process) continue;
    fabric_->SendParcel(p, kEndChannel, words, nn::Tensor(), base::Event())
        .status()
        .IgnoreError();
  }
}

void ProgramLinks::Wait(ProgramContext& context) {
  absl::Time patience = absl::InfiniteFuture();
  while (!context.outcome.WaitFor(kLook)) {
    context.groups.AbortStale(context.Returned());
    if (context.outcome.status().ok()) continue;
    if (patience == absl::InfiniteFuture()) {
      patience = absl::Now() + kFarewell;
      context.groups.Abort(context.outcome.status());
    }
    if (absl::Now() < patience) continue;
    // A rank here may still compute; those of other processes are not waited
    // for any longer.
    for (int rank = 0; rank < context.spec.ranks; ++rank) {
      if (rank < context.first || rank >= context.last) {
        context.outcome.End(rank);
      }
    }
  }
  // A process that closes its links is lost to those that do not know yet that
  // it is done. So each closes them when all have confirmed that they know.
  const absl::Time end = absl::Now() + kFarewell;
  Say(kDone);
  {
    absl::MutexLock lock(&shared_->mutex);
    shared_->mutex.AwaitWithDeadline(
        absl::Condition(shared_.get(), &Shared::AllDone), end);
  }
  Say(kBye);
  absl::MutexLock lock(&shared_->mutex);
  shared_->mutex.AwaitWithDeadline(
      absl::Condition(shared_.get(), &Shared::AllBye), end);
}

}  // namespace troupe::actors
