// Several simulated processes with work of every kind in flight: collectives on
// all ranks and on two of them, messages, parcels. A seed chooses the process
// of each rank, what is started, and in which order.
//
//   Scene scene(/*seed=*/7);
//   scene.StartEverything();
//   while (!scene.AllReady()) scene.Drive();
//   scene.ExpectResults();
//
// Threads: one.

#ifndef TESTS_COMM_SCENE_H_
#define TESTS_COMM_SCENE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "comm/communicator.h"
#include "gtest/gtest.h"
#include "tests/comm/reduction_test_data.h"
#include "tests/comm/shelf.h"
#include "tests/comm/sim_world.h"

namespace troupe::comm {

class Scene {
 public:
  explicit Scene(std::uint64_t seed, SimWorldOptions options = {})
      : state_(seed),
        shared_(options.shared_memory),
        allocator_(shared_ ? shared_->allocator() : ordinary_),
        world_(Options(std::move(options))) {
    FabricGroupOptions all{"all", {}};
    for (int r = 0; r < ranks_; ++r) all.ranks.push_back(r);
    all_ = world_.MakeGroup(all);
    FabricGroupOptions ends{"ends", {ranks_ - 1, 0}};
    ends_ = world_.MakeGroup(ends);
    for (int p = 0; p < world_.processes(); ++p) {
      shelves_.push_back(std::make_shared<Shelf>());
      world_.fabric(p).SetParcelHandler(/*channel=*/5, shelves_.back());
    }
  }

  SimWorld& world() { return world_; }
  int Choose(int n) { return static_cast<int>(NextBits(&state_) % n); }

  void StartEverything() {
    for (int i = 0; i < 6; ++i) {
      Group& group = i % 3 == 2 ? ends_ : all_;
      StartOne(group, /*ahead=*/Choose(2) == 0);
      StartMessage();
      StartParcel();
    }
  }

  // Makes progress somewhere: the seed chooses how many network steps, which
  // fabric and which rank. Returns false when nothing happened.
  bool Drive() {
    bool worked = false;
    for (int i = Choose(4); i > 0; --i) worked |= world_.network().Step();
    worked |= world_.fabric(Choose(world_.processes())).Progress();
    // If this group lies within one process, no fabric drives it.
    worked |= ends_[Choose(2)]->Progress();
    return worked;
  }

  // Aborts all fabrics and ranks, as a job does when it ends.
  void EndJob() {
    const absl::Status why = absl::CancelledError("the job has ended");
    for (int p = 0; p < world_.processes(); ++p) world_.fabric(p).Abort(why);
    for (const Group* group : {&all_, &ends_}) {
      for (const auto& rank : *group) rank->Abort(why);
    }
  }

  bool AllReady() const {
    for (const auto& [event, name] : events_) {
      if (!event.ready()) return false;
    }
    return true;
  }

  const std::vector<std::pair<Event, std::string>>& events() const {
    return events_;
  }

  void ExpectResults() const {
    for (const Result& result : results_) {
      EXPECT_TRUE(nn::BitEqual(result.range, result.expected))
          << result.name << ", processes " << layout_;
    }
    for (std::size_t p = 0; p < shelves_.size(); ++p) {
      EXPECT_EQ(shelves_[p]->headers, parcels_[p]) << "of process " << p;
    }
  }

 private:
  // Returns `options` with a layout, a seed and sizes that the seed chooses;
  // the other fields are unchanged.
  SimWorldOptions Options(SimWorldOptions options) {
    const int processes = 2 + Choose(3);
    ranks_ = processes + Choose(3);
    for (int r = 0; r < ranks_; ++r) {
      options.process_of.push_back(r < processes ? r : Choose(processes));
    }
    std::swap(options.process_of[0], options.process_of[Choose(ranks_)]);
    layout_ = absl::StrJoin(options.process_of, " ");
    options.seed = NextBits(&state_);
    constexpr std::optional<std::size_t> kEager[] = {0, 256, std::nullopt};
    options.eager_bytes = kEager[Choose(3)];
    options.piece_bytes = 64 + 64 * Choose(8);
    parcels_.resize(processes);
    return options;
  }

  // Starts a collective on all ranks of a group. `ahead`: drives the processes
  // between the starts of the ranks.
  void StartOne(const Group& group, bool ahead) {
    const int size = static_cast<int>(group.size());
    const auto dtype = Choose(2) == 0 ? nn::DType::kF32 : nn::DType::kBF16;
    constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kAvg,
                                 ReduceOp::kMax};
    const ReduceOp op = kOps[Choose(3)];
    const int root = Choose(size);
    const int kind = Choose(3);
    const std::int64_t count = Choose(3) == 0 ? 3 : 10 + Choose(20000);
    const std::uint64_t seed = NextBits(&state_);
    std::vector<nn::Tensor> ranges;
    for (int r = 0; r < size; ++r) {
      ranges.push_back(TestRange(dtype, count, seed, r, allocator_));
    }
    const nn::Tensor expected =
        kind == 1 ? TestRange(dtype, count, seed, root, allocator_)
                  : ExpectedResult(op, ranges, allocator_);
    kept_.insert(kept_.end(), ranges.begin(), ranges.end());
    for (int r = 0; r < size; ++r) {
      Collective collective = kind == 0 ? AllReduce(op, ranges[r])
                              : kind == 1
                                  ? Broadcast(root, ranges[r])
                                  : Reduce(op, root, ranges[r], ranges[r]);
      collective.priority = Choose(3);  // may differ between ranks
      const absl::StatusOr<Event> event = group[r]->Start(collective, Event());
      if (!event.ok()) {
        events_.emplace_back(Failed(event.status()), collective.ToString());
        continue;
      }
      events_.emplace_back(*event, collective.ToString());
      if (kind != 2 || r == root) {
        results_.push_back({ranges[r], expected,
                            absl::StrCat(seq_++, " ", collective.ToString(),
                                         " on rank ", r, " of ", size)});
      }
      if (ahead) Drive();
    }
  }

  void StartMessage() {
    const int size = static_cast<int>(all_.size());
    const int from = Choose(size);
    const int to = Choose(size);
    const std::int64_t count = Choose(2) == 0 ? 5 : 5000;
    const std::uint64_t seed = NextBits(&state_);
    const nn::Tensor data =
        TestRange(nn::DType::kF32, count, seed, 0, allocator_);
    const nn::Tensor into =
        nn::Tensor::Zeros({count}, nn::DType::kF32, allocator_);
    const auto tag = static_cast<std::uint32_t>(events_.size());
    Add(all_[from]->StartSend(to, tag, data, Event()), "send");
    if (Choose(2) == 0) Drive();
    Add(all_[to]->StartRecv(Choose(2) == 0 ? from : kAnySource, tag, into,
                            nullptr),
        "recv");
    results_.push_back({into, data, absl::StrCat("rank ", from, " to ", to)});
  }

  void StartParcel() {
    const int from = Choose(world_.processes());
    const int to =
        (from + 1 + Choose(world_.processes() - 1)) % world_.processes();
    // Parcels arrive in order per sender: with one sender for each receiver,
    // the list of headers is deterministic.
    if (from != (to + 1) % world_.processes()) return;
    const std::string header = absl::StrCat("parcel ", events_.size());
    Add(world_.fabric(from).SendParcel(
            to, /*channel=*/5, header,
            TestRange(nn::DType::kF32, Choose(3) * 2000, 1, 0, allocator_),
            Event()),
        header);
    parcels_[to].push_back(header);
  }

  void Add(const absl::StatusOr<Event>& event, const std::string& name) {
    events_.emplace_back(event.ok() ? *event : Failed(event.status()), name);
  }
  static Event Failed(const absl::Status& status) {
    const Event event = Event::Make();
    event.Complete(status);
    return event;
  }

  std::uint64_t state_;
  int ranks_ = 0;
  std::string layout_;
  int seq_ = 0;
  std::vector<std::vector<std::string>> parcels_;  // headers, by receiver
  nn::CachingAllocator ordinary_;
  const std::shared_ptr<SharedMemory> shared_;  // may be null
  nn::Allocator& allocator_;
  SimWorld world_;
  Group all_, ends_;
  std::vector<std::shared_ptr<Shelf>> shelves_;
  std::vector<std::pair<Event, std::string>> events_;
  struct Result {
    nn::Tensor range, expected;
    std::string name;
  };
  std::vector<Result> results_;
  std::vector<nn::Tensor> kept_;  // a local group does not keep ranges alive
};

}  // namespace troupe::comm

#endif  // TESTS_COMM_SCENE_H_
