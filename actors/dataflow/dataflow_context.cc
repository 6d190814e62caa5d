#include "actors/dataflow/dataflow_context.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/dataflow/channel_wire.h"
#include "actors/dataflow/stage_actor.h"

namespace troupe::actors {
namespace {

absl::Status NotFrom(int from, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      "process ", from, " sends ", what, ", which is not its to send"));
}

// Returns a receiver that passes the words of `channel` to the local stage at
// its end.
std::shared_ptr<WordReceiver> ChannelReceiver(const DataflowContext& context,
                                              int channel, int writer,
                                              int reader) {
  const auto& stages = context.flow->stages();
  const int writes = stages[writer].process, reads = stages[reader].process;
  auto check = [=, here = context.process](int from, const WireWord& word) {
    const bool to_reader = word.kind == WireWord::Kind::kTensor ||
                           word.kind == WireWord::Kind::kEnd;
    const bool known = to_reader || word.kind == WireWord::Kind::kCredit;
    if (!known || from != (to_reader ? writes : reads) ||
        here != (to_reader ? reads : writes) ||
        word.has_tensor != (word.kind == WireWord::Kind::kTensor)) {
      return NotFrom(from, "a word of a channel");
    }
    return absl::OkStatus();
  };
  auto take = [channel, to_reader = context.stages[reader],
               to_writer = context.stages[writer]](int, const WireWord& word,
                                                   const nn::Tensor& tensor) {
    switch (word.kind) {
      case WireWord::Kind::kTensor:
        caf::anon_send(to_reader, DataflowTensor{channel, word.number, tensor});
        break;
      case WireWord::Kind::kEnd:
        caf::anon_send(to_reader, DataflowEnd{channel, word.number});
        break;
      default:
        caf::anon_send(to_writer, DataflowCredit{channel});
    }
  };
  return std::make_shared<WordReceiver>(check, take);
}

std::shared_ptr<WordReceiver> ConductorReceiver(
    const DataflowConductor& conductor) {
  auto check = [](int from, const WireWord& word) {
    const bool failed = word.kind == WireWord::Kind::kFailed;
    const bool known = failed || word.kind == WireWord::Kind::kAlive ||
                       word.kind == WireWord::Kind::kDone ||
                       word.kind == WireWord::Kind::kBye;
    const bool text =
        word.dtype == nn::DType::kU8 && word.shape.rank() == 1 &&
        word.shape.numel() <= static_cast<std::int64_t>(kFailureBytesMax);
    if (!known || (word.has_tensor && !(failed && text)) ||
        (failed && (word.number < 1 || word.number > 16))) {
      return NotFrom(from, "a word to the conductor");
    }
    return absl::OkStatus();
  };
  auto take = [conductor](int from, const WireWord& word,
                          const nn::Tensor& tensor) {
    DataflowNews news;
    news.process = from;
    news.count = word.number;
    switch (word.kind) {
      case WireWord::Kind::kDone:
        news.kind = DataflowNews::Kind::kDone;
        break;
      case WireWord::Kind::kFailed:
        news.kind = DataflowNews::Kind::kFailed;
        news.code = static_cast<std::int32_t>(word.number);
        if (tensor.defined()) {
          news.message.assign(static_cast<const char*>(tensor.raw()),
                              tensor.bytes());
        }
        break;
      case WireWord::Kind::kBye:
        news.kind = DataflowNews::Kind::kBye;
        break;
      default:
        news.kind = DataflowNews::Kind::kAlive;
    }
    caf::anon_send(conductor, std::move(news));
  };
  return std::make_shared<WordReceiver>(check, take);
}

// Calls `set` with each channel that has one end in this process.
template <typename Set>
void ForSpanningChannels(const DataflowContext& context, Set set) {
  const Dataflow& flow = *context.flow;
  for (int c = 0; c < static_cast<int>(flow.channels().size()); ++c) {
    const int writer = flow.WriterOf(c).stage, reader = flow.ReaderOf(c).stage;
    if (context.IsHere(writer) != context.IsHere(reader)) {
      set(c, writer, reader);
    }
  }
}

void TakeWords(const DataflowContext& context,
               const DataflowConductor& conductor) {
  ForSpanningChannels(context, [&](int channel, int writer, int reader) {
    context.fabric->SetParcelHandler(
        WireChannel(channel),
        ChannelReceiver(context, channel, writer, reader));
  });
  context.fabric->SetParcelHandler(kConductorChannel,
                                   ConductorReceiver(conductor));
}

}  // namespace

DataflowRoutes::DataflowRoutes(DataflowContextPtr context,
                               DataflowConductor conductor)
    : context_(std::move(context)), conductor_(std::move(conductor)) {
  for (int c = 0; c < static_cast<int>(context_->flow->channels().size());
       ++c) {
    writers_.push_back(context_->flow->WriterOf(c).stage);
    readers_.push_back(context_->flow->ReaderOf(c).stage);
  }
}

void BeginDataflow(caf::actor_system& system,
                   const std::shared_ptr<DataflowContext>& context,
                   const DataflowConductor& conductor) {
  const int stages = static_cast<int>(context->flow->stages().size());
  context->runs.resize(stages);
  context->stages.resize(stages);
  for (int s = 0; s < stages; ++s) {
    if (!context->IsHere(s)) continue;
    context->runs[s] = std::make_shared<StageRun>(context->flow, s);
    context->stages[s] =
        SpawnStrand(system, DataflowStageBehavior, context->runs[s]);
  }
  const auto routes =
      std::make_shared<const DataflowRoutes>(context, conductor);
  caf::anon_send(conductor, DataflowContextPtr(context));
  if (context->fabric != nullptr) TakeWords(*context, conductor);
  for (int s = 0; s < stages; ++s) {
    if (context->IsHere(s)) {
      caf::anon_send(context->stages[s], DataflowRoutesPtr(routes));
    }
  }
}

std::function<void(int, const absl::Status&)> LostListener(
    const DataflowConductor& conductor) {
  return [conductor](int process, const absl::Status& why) {
    DataflowNews news;
    news.process = process;
    news.kind = DataflowNews::Kind::kLost;
    news.message = std::string(why.message());
    caf::anon_send(conductor, std::move(news));
  };
}

void RefuseWords(const DataflowContext& context) {
  if (context.fabric == nullptr) return;
  ForSpanningChannels(context, [&](int channel, int, int) {
    context.fabric->SetParcelHandler(WireChannel(channel), nullptr);
  });
  context.fabric->SetParcelHandler(kConductorChannel, nullptr);
}

}  // namespace troupe::actors
