#include "tests/actors/dataflow/small_flow.h"

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace troupe::actors {
namespace {

// Writes 0, 1, ... to all its outputs.
class Counter {
 public:
  explicit Counter(int count, int outputs) : count_(count), outputs_(outputs) {}
  absl::StatusOr<std::optional<Tensors>> Next() {
    if (next_ == count_) return std::nullopt;
    const Tensors all(outputs_, NumberTensor(next_));
    ++next_;
    return all;
  }

 private:
  const int count_, outputs_;
  int next_ = 0;
};

class Sink {
 public:
  explicit Sink(Numbers* got) : got_(*got) { got_ = Numbers(); }
  absl::Status Add(const nn::Tensor& tensor) {
    got_.values.push_back(NumberIn(tensor));
    return absl::OkStatus();
  }
  absl::Status End() {
    got_.ended = true;
    return absl::OkStatus();
  }

 private:
  Numbers& got_;
};

void AddSink(Dataflow& flow, Channel channel, int process, Numbers* got) {
  flow.AddStage<Sink>("sink", [got] { return std::make_unique<Sink>(got); })
      .On(channel, &Sink::Add)
      .AtEnd(&Sink::End)
      .InProcess(process);
}

}  // namespace

nn::Tensor NumberTensor(std::int64_t value) {
  static nn::CachingAllocator memory;
  return nn::Tensor::Of<std::int64_t>({1}, {value}, memory);
}

std::int64_t NumberIn(const nn::Tensor& tensor) {
  return tensor.data<std::int64_t>()[0];
}

Dataflow Chain(const SmallFlow& options, Numbers* got) {
  Dataflow flow;
  const Channel numbers = flow.AddChannel("numbers", options.capacity);
  const Channel squares = flow.AddChannel("squares", options.capacity);
  flow.AddStage<Counter>("source",
                         [=] {
                           return std::make_unique<Counter>(options.count,
                                                            /*outputs=*/1);
                         })
      .Source({numbers}, &Counter::Next);
  flow.AddStage("square")
      .On(numbers, squares,
          [=](const nn::Tensor& x) -> absl::StatusOr<nn::Tensor> {
            const std::int64_t value = NumberIn(x);
            if (value == options.throws_at) {
              throw std::runtime_error("too large");
            }
            return NumberTensor(value * value);
          })
      .InProcess(options.square_in);
  AddSink(flow, squares, options.sink_in, got);
  return flow;
}

Dataflow Diamond(const SmallFlow& options, Numbers* got) {
  Dataflow flow;
  const Channel a = flow.AddChannel("a", options.capacity);
  const Channel b = flow.AddChannel("b", options.capacity);
  const Channel doubles = flow.AddChannel("doubles", options.capacity);
  const Channel sums = flow.AddChannel("sums", options.capacity);
  const Channel back = flow.AddChannel("back", options.capacity);
  const auto twice = [=](const nn::Tensor& x) -> absl::StatusOr<nn::Tensor> {
    const std::int64_t value = NumberIn(x);
    if (value == options.throws_at) throw std::runtime_error("too large");
    return NumberTensor(2 * value);
  };
  flow.AddStage<Counter>("source",
                         [=] {
                           return std::make_unique<Counter>(options.count,
                                                            /*outputs=*/2);
                         })
      .Source({a, b}, &Counter::Next);
  flow.AddStage("double")
      .On(sums, back, twice)
      .On(a, doubles, twice)
      .InProcess(options.square_in);
  flow.AddStage("sum").On(
      {doubles, b}, {sums}, [](const Tensors& in) -> absl::StatusOr<Tensors> {
        return Tensors{NumberTensor(NumberIn(in[0]) + NumberIn(in[1]))};
      });
  AddSink(flow, back, options.sink_in, got);
  return flow;
}

}  // namespace troupe::actors
