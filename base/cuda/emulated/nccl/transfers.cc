// Sends and receives.

#include <cstring>
#include <utility>

#include "base/cuda/emulated/nccl/exchanges.h"
#include "base/cuda/emulated/nccl/reduction.h"
#include "base/cuda/emulated/runtime/scheduler.h"

namespace emulated_cuda {

// One send with its receive; either may start first.
struct Transfer {
  Operation* sender = nullptr;
  Operation* receiver = nullptr;
  WorkCall send;
  WorkCall receive;
  DeviceMask devices = 0;
  bool is_done = false;
  bool is_wrong = false;  // the counts differ
  Edge sent = 0;
  Edge received = 0;

  bool CanRun() const {
    return !is_done && !is_wrong && sender != nullptr && receiver != nullptr &&
           IsAtHead(*sender) && IsAtHead(*receiver);
  }
};

namespace {

// Carries out a transfer. Each side's earlier work happens before the other
// side's later work.
void Run(Transfer& transfer) {
  const WorkCall& send = transfer.send;
  const WorkCall& receive = transfer.receive;
  if (send.count != receive.count || send.type != receive.type) {
    Problem("a send does not fit its receive: " + std::to_string(send.count) +
            " elements of type " + std::to_string(send.type) + ", in " +
            transfer.sender->work.site.ToString() + "; " +
            std::to_string(receive.count) + " of type " +
            std::to_string(receive.type) + ", in " +
            transfer.receiver->work.site.ToString());
    transfer.is_wrong = true;
    return;
  }
  std::vector<char> bytes(send.count * BytesOf(send.type));
  CallAs(*transfer.sender, [&] {
    std::memcpy(bytes.data(), send.send, bytes.size());
    Release(transfer.sent);
  });
  CallAs(*transfer.receiver, [&] {
    Acquire(transfer.sent);
    std::memcpy(receive.recv, bytes.data(), bytes.size());
    Release(transfer.received);
  });
  CallAs(*transfer.sender, [&] { Acquire(transfer.received); });
  transfer.is_done = true;
}

// The transfers of one operation.
class Transfers : public Exchange {
 public:
  void Add(std::shared_ptr<Transfer> transfer) {
    transfers_.push_back(std::move(transfer));
  }

  bool CanAdvance(const Operation&) const override {
    bool all_done = true;
    for (const auto& transfer : transfers_) {
      if (transfer->CanRun()) return true;
      all_done = all_done && transfer->is_done;
    }
    return all_done;
  }
  bool Advance(Operation&) override {
    bool all_done = true;
    bool has_run = false;
    for (const auto& transfer : transfers_) {
      if (!has_run && transfer->CanRun()) {
        Run(*transfer);
        has_run = true;
      }
      all_done = all_done && transfer->is_done;
    }
    return all_done;
  }
  void Leave(const Operation& op) override {
    for (const auto& transfer : transfers_) {
      if (transfer->is_done) continue;
      if (transfer->sender == &op) transfer->sender = nullptr;
      if (transfer->receiver == &op) transfer->receiver = nullptr;
      transfer->is_wrong = true;  // never completes now
    }
  }
  DeviceMask devices() const override {
    DeviceMask devices = 0;
    for (const auto& transfer : transfers_) devices |= transfer->devices;
    return devices;
  }
  std::string State(const Operation&) const override {
    for (const auto& transfer : transfers_) {
      if (transfer->is_wrong) return "does not fit its peer";
    }
    return "waits for its peer";
  }

 private:
  std::vector<std::shared_ptr<Transfer>> transfers_;
};

// Returns the transfer of `call`, joined with its counterpart if that exists
// already.
std::shared_ptr<Transfer> Match(Comm& comm, Operation& op,
                                const WorkCall& call) {
  const bool is_send = call.kind == Kind::kSend;
  const std::pair<int, int> ends = is_send ? std::pair(comm.rank, call.root)
                                           : std::pair(call.root, comm.rank);
  Clique::Channel& channel = comm.clique->channels[ends];
  auto& mine = is_send ? channel.sends : channel.receives;
  auto& theirs = is_send ? channel.receives : channel.sends;
  std::shared_ptr<Transfer> transfer;
  if (theirs.empty()) {
    transfer = std::make_shared<Transfer>();
    mine.push_back(transfer);
  } else {
    transfer = theirs.front();
    theirs.pop_front();
  }
  transfer->devices |= op.work.devices;
  (is_send ? transfer->sender : transfer->receiver) = &op;
  (is_send ? transfer->send : transfer->receive) = call;
  return transfer;
}

// Exchange that replaces the one of an aborted rank.
class Aborted : public Exchange {
 public:
  bool CanAdvance(const Operation&) const override { return true; }
  bool Advance(Operation&) override { return true; }
  void Leave(const Operation&) override {}
  DeviceMask devices() const override { return 0; }
  std::string State(const Operation&) const override { return "was aborted"; }
};

}  // namespace

Work TransferWork(const std::shared_ptr<Comm>& comm,
                  const std::vector<WorkCall>& calls, const CallSite& site) {
  Work work;
  work.name =
      calls.size() == 1 ? calls[0].name : "a group of ncclSend, ncclRecv";
  work.site = site;
  work.devices = DeviceBit(comm->device);
  work.join = [weak = std::weak_ptr<Comm>(comm),
               calls](Operation& op) -> std::shared_ptr<Exchange> {
    const std::shared_ptr<Comm> comm = weak.lock();
    if (!comm || comm->is_aborted) {
      Problem("a graph was launched after its communicator was destroyed");
      return nullptr;
    }
    auto transfers = std::make_shared<Transfers>();
    for (const WorkCall& call : calls) {
      transfers->Add(Match(*comm, op, call));
    }
    NoteStarted(*comm, op);
    return transfers;
  };
  return work;
}

void AbortPending(Comm& comm) {
  comm.deferred.clear();
  for (const auto& weak : comm.started) {
    const OperationPtr op = weak.lock();
    if (!op || op->done || !op->exchange) continue;
    // A collective that all ranks have met in still completes.
    op->exchange->Leave(*op);
    op->exchange = std::make_shared<Aborted>();
  }
}

}  // namespace emulated_cuda
