// Collectives of all ranks.

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/cuda/emulated/nccl/exchanges.h"
#include "base/cuda/emulated/nccl/reduction.h"
#include "base/cuda/emulated/runtime/scheduler.h"

namespace emulated_cuda {

class Collective : public Exchange {
 public:
  explicit Collective(std::shared_ptr<Clique> clique)
      : clique_(std::move(clique)),
        parts_(static_cast<std::size_t>(clique_->ranks)) {}

  void Join(int rank, Operation& op, const WorkCall& call) {
    parts_[static_cast<std::size_t>(rank)] = {&op, call};
    devices_ |= op.work.devices;
  }
  bool IsFull() const {
    for (const Part& part : parts_) {
      if (part.op == nullptr) return false;
    }
    return true;
  }

  bool CanAdvance(const Operation&) const override {
    if (has_met_) return true;
    if (clique_->is_broken) return false;
    for (const Part& part : parts_) {
      if (part.op == nullptr || !IsAtHead(*part.op)) return false;
    }
    return true;
  }
  bool Advance(Operation&) override {
    if (!has_met_ && Agree()) Meet();
    return has_met_;
  }
  void Leave(const Operation& op) override {
    for (Part& part : parts_) {
      if (part.op == &op) part.op = nullptr;
    }
  }
  DeviceMask devices() const override { return devices_; }
  std::string State(const Operation&) const override {
    return clique_->is_broken ? "does not fit its peers"
                              : "waits for its peers";
  }

 private:
  struct Part {
    Operation* op = nullptr;
    WorkCall call;
  };

  bool Agree() const;
  void Meet();
  void Read();
  void Write();
  std::vector<char> ResultFor(std::size_t rank) const;
  std::vector<char> Reduced() const;
  bool Reduces() const {
    const Kind kind = parts_[0].call.kind;
    return kind != Kind::kBroadcast && kind != Kind::kAllGather;
  }

  const std::shared_ptr<Clique> clique_;
  std::vector<Part> parts_;
  DeviceMask devices_ = 0;
  bool has_met_ = false;
  Edge edge_ = 0;
  std::vector<std::vector<char>> inputs_;   // index: rank
  std::vector<std::vector<char>> factors_;  // index: rank; empty: none
  std::vector<char> reduced_;
};

// Returns whether all ranks made the same call; reports a difference.
bool Collective::Agree() const {
  const WorkCall& first = parts_[0].call;
  bool same = true;
  for (const Part& part : parts_) {
    const WorkCall& call = part.call;
    same = same && call.kind == first.kind && call.count == first.count &&
           call.type == first.type && call.root == first.root &&
           call.has_factor == first.has_factor &&
           (call.has_factor || call.op == first.op);
  }
  if (same) return true;
  std::string text = "the ranks disagree in a collective:";
  for (std::size_t r = 0; r < parts_.size(); ++r) {
    const WorkCall& call = parts_[r].call;
    text += "\n  rank " + std::to_string(r) + ": " + call.name + " of " +
            std::to_string(call.count) + " elements of type " +
            std::to_string(call.type) + ", operator " +
            std::to_string(call.op) + ", root " + std::to_string(call.root) +
            ", in " + parts_[r].op->work.site.ToString();
  }
  Problem(text);
  clique_->is_broken = true;
  return false;
}

// Carries out the collective. Each rank's earlier work happens before all
// ranks' later work.
void Collective::Meet() {
  Read();
  if (Reduces()) reduced_ = Reduced();
  Write();
  inputs_.clear();
  has_met_ = true;
}

void Collective::Read() {
  inputs_.resize(parts_.size());
  for (std::size_t r = 0; r < parts_.size(); ++r) {
    const WorkCall& call = parts_[r].call;
    const int ranks = clique_->ranks;
    inputs_[r].resize(BytesRead(call, static_cast<int>(r), ranks));
    std::vector<char> factor(call.has_factor ? BytesOf(call.type) : 0);
    CallAs(*parts_[r].op, [&] {
      std::memcpy(inputs_[r].data(), call.send, inputs_[r].size());
      const void* const from = call.factor.value.empty()
                                   ? call.factor.on_device
                                   : call.factor.value.data();
      if (!factor.empty()) std::memcpy(factor.data(), from, factor.size());
      Release(edge_);
    });
    if (call.has_factor) factors_.push_back(std::move(factor));
  }
}

void Collective::Write() {
  for (std::size_t r = 0; r < parts_.size(); ++r) {
    const std::vector<char> result = ResultFor(r);
    CallAs(*parts_[r].op, [&] {
      Acquire(edge_);
      std::memcpy(parts_[r].call.recv, result.data(), result.size());
    });
  }
}

std::vector<char> Collective::Reduced() const {
  const WorkCall& call = parts_[0].call;
  Reduction reduction;
  reduction.type = call.type;
  reduction.op = call.has_factor ? ncclSum : call.op;
  reduction.factors = factors_;
  std::vector<const char*> terms;
  for (const auto& input : inputs_) terms.push_back(input.data());
  std::vector<char> result(inputs_[0].size());
  reduction.Apply(terms, result.size() / BytesOf(call.type), result.data());
  return result;
}

// Returns the bytes that the rank receives; empty: none.
std::vector<char> Collective::ResultFor(std::size_t rank) const {
  const WorkCall& call = parts_[rank].call;
  const std::size_t bytes =
      BytesWritten(call, static_cast<int>(rank), clique_->ranks);
  if (bytes == 0) return {};
  switch (call.kind) {
    case Kind::kBroadcast:
      return inputs_[static_cast<std::size_t>(call.root)];
    case Kind::kAllGather: {
      std::vector<char> all;
      for (const auto& input : inputs_) {
        all.insert(all.end(), input.begin(), input.end());
      }
      return all;
    }
    case Kind::kReduceScatter: {
      const char* const begin = reduced_.data() + rank * bytes;
      return std::vector<char>(begin, begin + bytes);
    }
    default:
      return reduced_;
  }
}

void NoteStarted(Comm& comm, Operation& op) {
  auto& started = comm.started;
  started.erase(std::remove_if(started.begin(), started.end(),
                               [](const std::weak_ptr<Operation>& weak) {
                                 const OperationPtr op = weak.lock();
                                 return !op || op->done;
                               }),
                started.end());
  started.push_back(op.shared_from_this());
}

bool IsAtHead(const Operation& op) {
  return !op.stream->queue.empty() && op.stream->queue.front().get() == &op &&
         WaitsForNothing(op);
}

std::size_t BytesRead(const WorkCall& call, int rank, int ranks) {
  const std::size_t bytes = call.count * BytesOf(call.type);
  switch (call.kind) {
    case Kind::kBroadcast:
      return rank == call.root ? bytes : 0;
    case Kind::kReduceScatter:
      return bytes * static_cast<std::size_t>(ranks);
    case Kind::kReceive:
      return 0;
    default:
      return bytes;
  }
}

std::size_t BytesWritten(const WorkCall& call, int rank, int ranks) {
  const std::size_t bytes = call.count * BytesOf(call.type);
  switch (call.kind) {
    case Kind::kReduce:
      return rank == call.root ? bytes : 0;
    case Kind::kAllGather:
      return bytes * static_cast<std::size_t>(ranks);
    case Kind::kSend:
      return 0;
    default:
      return bytes;
  }
}

Work CollectiveWork(const std::shared_ptr<Comm>& comm, const WorkCall& call,
                    const CallSite& site) {
  Work work;
  work.name = call.name;
  work.site = site;
  work.devices = DeviceBit(comm->device);
  work.join = [weak = std::weak_ptr<Comm>(comm),
               call](Operation& op) -> std::shared_ptr<Exchange> {
    const std::shared_ptr<Comm> comm = weak.lock();
    if (!comm || comm->is_aborted) {
      Problem("a graph was launched after its communicator was destroyed");
      return nullptr;
    }
    Clique& clique = *comm->clique;
    const std::uint64_t number = comm->next_collective++;
    std::weak_ptr<Collective>& at = clique.collectives[number];
    std::shared_ptr<Collective> collective = at.lock();
    if (!collective) {
      collective = std::make_shared<Collective>(comm->clique);
      at = collective;
    }
    collective->Join(comm->rank, op, call);
    if (collective->IsFull()) clique.collectives.erase(number);
    NoteStarted(*comm, op);
    return collective;
  };
  return work;
}

}  // namespace emulated_cuda
