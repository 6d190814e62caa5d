// A group of ranks and what they exchange: torch.distributed's process group,
// its ten collectives, and messages.
//
//   void Run(Rank& rank) {
//     Group& world = rank.world();
//     Var sums = rank.Full({1024}, rank.number());
//     world.AllReduce(sums);                        // in place
//     Var all = world.AllGather(sums);              // [size, 1024]
//     if (rank.number() == 0) world.Send(sums, /*to=*/1, /*tag=*/7);
//     if (rank.number() == 1) world.Recv(sums, /*from=*/0, /*tag=*/7);
//     Work work = world.StartAllReduce(sums, ReduceOp::kMax);
//     work.Wait();
//     Group& even = rank.NewGroup({0, 2});          // ranks 0 and 2 call it
//   }
//
// All ranks of a group call the same collectives in the same order, on tensors
// of equal element count and dtype. Numbers of ranks (root, to, from) are those
// in the group, which for the world are the ranks' own.
//
// Tensors are on the ranks' device. On GPUs a collective, or a send, comes
// after all that the rank has computed so far; one that does not wait leaves
// what follows to run beside it. What a rank receives is there for what it
// computes after Wait(). GPUs add up floats alone unless NCCL does it
// (SpawnOptions::reduction_order), whose groups have no messages. With NCCL,
// and over several processes, their ranks start the collectives of all groups
// in one order; messages may be started in any.
//
// The collectives give, with n ranks, of which r is one:
//
//     AllReduce      every rank gets the sum (or product, ...) of all tensors
//     Broadcast      every rank gets the root's tensor
//     Reduce         the root gets the sum; others keep their tensors
//     AllGather      every rank gets [n, ...], with tensor r in row r
//     Gather         the root gets that; others get an undefined tensor
//     Scatter        rank r gets row r of the root's [n, ...]
//     ReduceScatter  rank r gets the sum of all ranks' row r of [n, ...]
//     AllToAll       row s of rank r's [n, ...] becomes row r of rank s's
//     Barrier        nobody goes on before all have come
//
// A loss (Var::is_loss) is a sum and a count: averaging it (ReduceOp::kAvg)
// over ranks gives the mean over all their targets; other ops are refused.
//
// Errors: base::StatusError, with the call and its line; kDeadlineExceeded
// after SpawnOptions::timeout; kUnavailable if a rank that is needed has
// returned from its program. The group cannot be used after the last two.
// Threads: the rank's own.
// Source of names and semantics: torch.distributed of PyTorch 2.15.

#ifndef TROUPE_GROUP_H_
#define TROUPE_GROUP_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "actors/program/call_note.h"
#include "actors/program/program_rank.h"
#include "base/event.h"
#include "comm/communicator.h"
#include "comm/reduction/reduce_op.h"
#include "nn/autograd/context.h"
#include "nn/autograd/var.h"
#include "nn/tensor/tensor.h"
#include "troupe/work.h"

namespace troupe {

using actors::CallPlace;
using comm::ReduceOp;
using nn::Tensor;
using nn::Var;

class OpRecorder;  // troupe/profile/op_recorder.h

class Group {
 public:
  // `ranks`: the members, whose order gives their numbers in the group. All
  // references outlive it.
  Group(actors::ProgramRank& strand, nn::Context& context,
        std::shared_ptr<comm::Communicator> comm, std::vector<int> ranks,
        OpRecorder& recorder);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // This rank's number in the group, and the number of its ranks.
  int rank() const { return comm_->rank(); }
  int size() const { return comm_->size(); }
  // The members' numbers in the program.
  const std::vector<int>& ranks() const { return ranks_; }

  void AllReduce(const Tensor& tensor, ReduceOp op = ReduceOp::kSum,
                 CallPlace place = CallPlace::Here());
  void AllReduce(const Var& tensor, ReduceOp op = ReduceOp::kSum,
                 CallPlace place = CallPlace::Here());
  void Broadcast(const Tensor& tensor, int root,
                 CallPlace place = CallPlace::Here());
  void Reduce(const Tensor& tensor, int root, ReduceOp op = ReduceOp::kSum,
              CallPlace place = CallPlace::Here());
  Var AllGather(const Tensor& tensor, CallPlace place = CallPlace::Here());
  Var Gather(const Tensor& tensor, int root,
             CallPlace place = CallPlace::Here());
  // `rows`: [n, ...] on the root, ignored elsewhere. `into`: the shape of a
  // row.
  void Scatter(const Tensor& rows, const Tensor& into, int root,
               CallPlace place = CallPlace::Here());
  Var ReduceScatter(const Tensor& rows, ReduceOp op = ReduceOp::kSum,
                    CallPlace place = CallPlace::Here());
  Var AllToAll(const Tensor& rows, CallPlace place = CallPlace::Here());
  // The same with unequal parts: the first axis of `tensor` holds sent[s] rows
  // for each rank s in order, and received[s] rows come from it.
  Var AllToAll(const Tensor& tensor, const std::vector<std::int64_t>& sent,
               const std::vector<std::int64_t>& received,
               CallPlace place = CallPlace::Here());
  void Barrier(CallPlace place = CallPlace::Here());

  // Messages from one rank to one other arrive in their order; the receiver
  // selects them by tag.
  void Send(const Tensor& tensor, int to, std::uint32_t tag = 0,
            CallPlace place = CallPlace::Here());
  // Returns the rank that has sent it. A message may be shorter than `into`.
  int Recv(const Tensor& into, int from = kAnySource, std::uint32_t tag = 0,
           CallPlace place = CallPlace::Here());

  // The same without waiting (async_op, isend, irecv). Results are in tensors
  // that the caller gives.
  Work StartAllReduce(const Tensor& tensor, ReduceOp op = ReduceOp::kSum,
                      CallPlace place = CallPlace::Here());
  Work StartBroadcast(const Tensor& tensor, int root,
                      CallPlace place = CallPlace::Here());
  Work StartReduce(const Tensor& tensor, int root, ReduceOp op = ReduceOp::kSum,
                   CallPlace place = CallPlace::Here());
  Work StartAllGather(const Tensor& tensor, const Tensor& into,
                      CallPlace place = CallPlace::Here());
  Work StartGather(const Tensor& tensor, const Tensor& into, int root,
                   CallPlace place = CallPlace::Here());
  Work StartScatter(const Tensor& rows, const Tensor& into, int root,
                    CallPlace place = CallPlace::Here());
  Work StartReduceScatter(const Tensor& rows, const Tensor& into,
                          ReduceOp op = ReduceOp::kSum,
                          CallPlace place = CallPlace::Here());
  Work StartAllToAll(const Tensor& rows, const Tensor& into,
                     CallPlace place = CallPlace::Here());
  Work StartBarrier(CallPlace place = CallPlace::Here());
  Work StartSend(const Tensor& tensor, int to, std::uint32_t tag = 0,
                 CallPlace place = CallPlace::Here());
  Work StartRecv(const Tensor& into, int from = kAnySource,
                 std::uint32_t tag = 0, CallPlace place = CallPlace::Here());

  // Waits for all that was started and not waited for; at the program's end.
  void Finish();
  // The communicator, for code that works on comm/ itself.
  comm::Communicator& comm() { return *comm_; }

 private:
  void Run(const char* name, const comm::Collective& collective,
           const CallPlace& place);
  Work Start(const char* name, const comm::Collective& collective,
             const CallPlace& place);
  // Makes the work of what was started, or throws.
  Work Started(const char* name, const absl::StatusOr<base::Event>& done,
               const CallPlace& place, std::shared_ptr<Work::State> state);
  // Returns a tensor of `like`'s dtype.
  Var Empty(const nn::Shape& shape, const Tensor& like);
  // Returns the shape of a row of `rows`, whose first axis has n.
  nn::Shape RowOf(const char* name, const Tensor& rows,
                  const CallPlace& place) const;

  actors::ProgramRank& strand_;
  nn::Context& context_;
  const std::shared_ptr<comm::Communicator> comm_;
  const std::vector<int> ranks_;
  OpRecorder& recorder_;
  std::deque<Work> started_;  // not waited for yet, the oldest first
};

// The same in the group of all ranks, of the rank whose context the Var is of.
void AllReduce(const Var& tensor, ReduceOp op = ReduceOp::kSum,
               CallPlace place = CallPlace::Here());
void Broadcast(const Var& tensor, int root,
               CallPlace place = CallPlace::Here());
Var AllGather(const Var& tensor, CallPlace place = CallPlace::Here());
void Send(const Var& tensor, int to, std::uint32_t tag = 0,
          CallPlace place = CallPlace::Here());
int Recv(const Var& into, int from = kAnySource, std::uint32_t tag = 0,
         CallPlace place = CallPlace::Here());

}  // namespace troupe

#endif  // TROUPE_GROUP_H_
