#include "troupe/group.h"

#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "actors/program/program_messages.h"
#include "base/check.h"
#include "base/status_error.h"
#include "nn/kernels/device_queues.h"
#include "troupe/internal/call_error.h"
#include "troupe/internal/work_state.h"
#include "troupe/profile/op_recorder.h"
#include "troupe/rank.h"

namespace troupe {
namespace {

// Returns the shape without its first axis, or with one of extent `rows` in
// front.
nn::Shape WithoutFirst(const nn::Shape& shape) {
  return nn::Shape(shape.dims().subspan(1));
}
nn::Shape Prepended(std::int64_t rows, const nn::Shape& shape) {
  std::vector<std::int64_t> dims = {rows};
  dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
  if (dims.size() > nn::Shape::kMaxRank || !nn::Shape::Fits(dims)) {
    throw base::StatusError(absl::InvalidArgumentError(
        absl::StrCat("a tensor of ", rows, " times the shape ",
                     shape.ToString(), " must have up to ", nn::Shape::kMaxRank,
                     " axes, and less than 2^60 elements")));
  }
  return nn::Shape(dims);
}

Group& WorldOf(const Var& var, const char* name, const CallPlace& place) {
  auto* const rank = dynamic_cast<Rank*>(var.context().owner());
  if (rank == nullptr) {
    ThrowOf(name, place,
            absl::InvalidArgumentError(
                "the tensor is of no rank's context; make it by rank.Zeros() "
                "and the like, or call the method of a Group"));
  }
  return rank->world();
}

}  // namespace

Group::Group(actors::ProgramRank& strand, nn::Context& context,
             std::shared_ptr<comm::Communicator> comm, std::vector<int> ranks,
             OpRecorder& recorder)
    : strand_(strand),
      context_(context),
      comm_(std::move(comm)),
      ranks_(std::move(ranks)),
      recorder_(recorder) {}

Group::~Group() {
  // A program that fails does not wait; its device may read memory of a peer's.
  for (const Work& work : started_) {
    const std::optional<actors::Incoming>& incoming = work.state_->incoming;
    if (!incoming.has_value() || incoming->copied.ready()) continue;
    if (const auto origin = incoming->copied.origin()) origin->Block();
  }
}

void Group::Run(const char* name, const comm::Collective& collective,
                const CallPlace& place) {
  const actors::CallNote::Scope call(strand_.call(), name, place);
  const OpRecorder::Call recorded(recorder_, name,
                                  {&collective.input, &collective.range});
  ThrowOf(name, place, strand_.Run(*comm_, collective));
}

Work Group::Started(const char* name, const absl::StatusOr<base::Event>& done,
                    const CallPlace& place,
                    std::shared_ptr<Work::State> state) {
  ThrowOf(name, place, done.status());
  state->strand = &strand_;
  state->kernels = &context_.kernels();
  state->comm = comm_.get();
  state->recorder = &recorder_;
  state->name = name;
  state->place = place;
  state->done = *done;
  Work work;
  work.state_ = std::move(state);
  while (!started_.empty() && started_.front().released()) started_.pop_front();
  started_.push_back(work);
  return work;
}

Work Group::Start(const char* name, const comm::Collective& collective,
                  const CallPlace& place) {
  const actors::CallNote::Scope call(strand_.call(), name, place,
                                     actors::CallKind::kStarts);
  const OpRecorder::Call recorded(recorder_, name,
                                  {&collective.input, &collective.range});
  const base::Event ready = nn::Record(context_.kernels(), nn::Queue::kCompute);
  auto state = std::make_shared<Work::State>();
  state->collective = collective;
  return Started(name, comm_->Start(collective, ready), place,
                 std::move(state));
}

void Group::Finish() {
  while (!started_.empty()) {
    Work oldest = std::move(started_.front());
    started_.pop_front();
    oldest.Wait();
    if (!oldest.state_->incoming.has_value()) continue;
    base::OrThrow(
        nn::Synchronize(context_.kernels(), oldest.state_->incoming->copied));
  }
}

Var Group::Empty(const nn::Shape& shape, const Tensor& like) {
  return Var(context_,
             base::OrThrow(nn::Tensor::Create(shape, like.dtype(),
                                              context_.kernels().allocator())));
}

nn::Shape Group::RowOf(const char* name, const Tensor& rows,
                       const CallPlace& place) const {
  if (rows.shape().rank() == 0 || rows.shape()[0] != size()) {
    ThrowOf(
        name, place,
        absl::InvalidArgumentError(absl::StrCat(
            "the first axis of ", rows.ToString(),
            " must have a row for each of the group's ", size(), " ranks")));
  }
  return WithoutFirst(rows.shape());
}

// --- Collectives ---

void Group::AllReduce(const Tensor& tensor, ReduceOp op, CallPlace place) {
  Run("AllReduce", comm::AllReduce(op, tensor), place);
}

void Group::AllReduce(const Var& tensor, ReduceOp op, CallPlace place) {
  if (tensor.is_loss() && op != ReduceOp::kAvg) {
    ThrowOf("AllReduce", place,
            absl::InvalidArgumentError(
                "a loss is a sum and a count; use ReduceOp::kAvg for its mean "
                "over all ranks, or pass loss.Mean() for other ops"));
  }
  AllReduce(tensor.tensor(), op, place);
}

void Group::Broadcast(const Tensor& tensor, int root, CallPlace place) {
  Run("Broadcast", comm::Broadcast(root, tensor), place);
}

void Group::Reduce(const Tensor& tensor, int root, ReduceOp op,
                   CallPlace place) {
  Run("Reduce",
      comm::Reduce(op, root, tensor, rank() == root ? tensor : Tensor()),
      place);
}

Var Group::AllGather(const Tensor& tensor, CallPlace place) {
  const Var all = Empty(Prepended(size(), tensor.shape()), tensor);
  Run("AllGather", comm::AllGather(tensor, all), place);
  return all;
}

Var Group::Gather(const Tensor& tensor, int root, CallPlace place) {
  Var all;
  if (rank() == root) all = Empty(Prepended(size(), tensor.shape()), tensor);
  Run("Gather", comm::Gather(root, tensor, all), place);
  return all;
}

void Group::Scatter(const Tensor& rows, const Tensor& into, int root,
                    CallPlace place) {
  Run("Scatter", comm::Scatter(root, rank() == root ? rows : Tensor(), into),
      place);
}

Var Group::ReduceScatter(const Tensor& rows, ReduceOp op, CallPlace place) {
  const Var sum = Empty(RowOf("ReduceScatter", rows, place), rows);
  Run("ReduceScatter", comm::ReduceScatter(op, rows, sum), place);
  return sum;
}

Var Group::AllToAll(const Tensor& rows, CallPlace place) {
  RowOf("AllToAll", rows, place);
  const Var received = Empty(rows.shape(), rows);
  Run("AllToAll", comm::AllToAll(rows, received), place);
  return received;
}

Var Group::AllToAll(const Tensor& tensor, const std::vector<std::int64_t>& sent,
                    const std::vector<std::int64_t>& received,
                    CallPlace place) {
  if (tensor.shape().rank() == 0) {
    ThrowOf("AllToAll", place,
            absl::InvalidArgumentError(
                "a scalar has no rows to send; pass Tensor::View({1}) of it"));
  }
  const nn::Shape row = WithoutFirst(tensor.shape());
  const auto elements = [&row](std::vector<std::int64_t> rows) {
    for (std::int64_t& count : rows) count *= row.numel();
    return rows;
  };
  const std::int64_t rows =
      std::accumulate(received.begin(), received.end(), std::int64_t{0});
  const Var all = Empty(Prepended(rows, row), tensor);
  Run("AllToAll",
      comm::AllToAll(tensor, elements(sent), all, elements(received)), place);
  return all;
}

void Group::Barrier(CallPlace place) { Run("Barrier", comm::Barrier(), place); }

// --- Messages ---

void Group::Send(const Tensor& tensor, int to, std::uint32_t tag,
                 CallPlace place) {
  const OpRecorder::Call recorded(recorder_, "Send", {&tensor});
  StartSend(tensor, to, tag, place).Wait();
}

int Group::Recv(const Tensor& into, int from, std::uint32_t tag,
                CallPlace place) {
  const OpRecorder::Call recorded(recorder_, "Recv", {&into});
  Work work = StartRecv(into, from, tag, place);
  work.Wait();
  return work.source();
}

// --- The same without waiting ---

Work Group::StartAllReduce(const Tensor& tensor, ReduceOp op, CallPlace place) {
  return Start("StartAllReduce", comm::AllReduce(op, tensor), place);
}

Work Group::StartBroadcast(const Tensor& tensor, int root, CallPlace place) {
  return Start("StartBroadcast", comm::Broadcast(root, tensor), place);
}

Work Group::StartReduce(const Tensor& tensor, int root, ReduceOp op,
                        CallPlace place) {
  return Start(
      "StartReduce",
      comm::Reduce(op, root, tensor, rank() == root ? tensor : Tensor()),
      place);
}

Work Group::StartAllGather(const Tensor& tensor, const Tensor& into,
                           CallPlace place) {
  return Start("StartAllGather", comm::AllGather(tensor, into), place);
}

Work Group::StartGather(const Tensor& tensor, const Tensor& into, int root,
                        CallPlace place) {
  return Start("StartGather",
               comm::Gather(root, tensor, rank() == root ? into : Tensor()),
               place);
}

Work Group::StartScatter(const Tensor& rows, const Tensor& into, int root,
                         CallPlace place) {
  return Start("StartScatter",
               comm::Scatter(root, rank() == root ? rows : Tensor(), into),
               place);
}

Work Group::StartReduceScatter(const Tensor& rows, const Tensor& into,
                               ReduceOp op, CallPlace place) {
  return Start("StartReduceScatter", comm::ReduceScatter(op, rows, into),
               place);
}

Work Group::StartAllToAll(const Tensor& rows, const Tensor& into,
                          CallPlace place) {
  return Start("StartAllToAll", comm::AllToAll(rows, into), place);
}

Work Group::StartBarrier(CallPlace place) {
  return Start("StartBarrier", comm::Barrier(), place);
}

Work Group::StartSend(const Tensor& tensor, int to, std::uint32_t tag,
                      CallPlace place) {
  const actors::CallNote::Scope call(strand_.call(), "Send", place,
                                     actors::CallKind::kStarts);
  const OpRecorder::Call recorded(recorder_, "StartSend", {&tensor});
  const absl::StatusOr<actors::Outgoing> out =
      actors::PrepareSend(context_.kernels(), *comm_, tensor);
  ThrowOf("Send", place, out.status());
  auto state = std::make_shared<Work::State>();
  state->sent = tensor;
  return Started("Send", comm_->StartSend(to, tag, out->data, out->ready),
                 place, std::move(state));
}

Work Group::StartRecv(const Tensor& into, int from, std::uint32_t tag,
                      CallPlace place) {
  const actors::CallNote::Scope call(strand_.call(), "Recv", place,
                                     actors::CallKind::kStarts);
  const OpRecorder::Call recorded(recorder_, "StartRecv", {&into});
  // The arrival is written when the message comes, so it has its place before.
  auto state = std::make_shared<Work::State>();
  actors::Incoming& incoming = state->incoming.emplace(actors::Incoming{into});
  ThrowOf("Recv", place,
          actors::PrepareReceive(context_.kernels(), *comm_, &incoming));
  const absl::StatusOr<base::Event> done =
      comm_->StartRecv(from, tag, incoming.buffer, &incoming.arrival);
  return Started("Recv", done, place, std::move(state));
}

// --- The world of a Var's rank ---

void AllReduce(const Var& tensor, ReduceOp op, CallPlace place) {
  WorldOf(tensor, "AllReduce", place).AllReduce(tensor, op, place);
}

void Broadcast(const Var& tensor, int root, CallPlace place) {
  WorldOf(tensor, "Broadcast", place).Broadcast(tensor, root, place);
}

Var AllGather(const Var& tensor, CallPlace place) {
  return WorldOf(tensor, "AllGather", place).AllGather(tensor, place);
}

void Send(const Var& tensor, int to, std::uint32_t tag, CallPlace place) {
  WorldOf(tensor, "Send", place).Send(tensor, to, tag, place);
}

int Recv(const Var& into, int from, std::uint32_t tag, CallPlace place) {
  return WorldOf(into, "Recv", place).Recv(into, from, tag, place);
}

}  // namespace troupe
