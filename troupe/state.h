// Saves and loads what a training loop of a program's own needs to go on:
// models, optimizers, numbers (torch.save and load_state_dict of a dict).
//
//   std::int64_t epoch = 0;
//   State state;
//   state.Add(model).Add(sgd).Add("epoch", epoch);
//   if (rank == 0) Save(state, "run.safetensors");
//   Load(state, "run.safetensors");           // into model, sgd and epoch
//
//   Save(model, "model.safetensors");         // the model alone
//   Load(model, "model.safetensors");
//
// The file is a safetensors file of format "pt", which Python reads with
// safetensors.torch.load_file(). Parameters and buffers of a module have the
// names that they have in PyTorch, without a prefix. What is added under a name
// has it as a prefix: "optimizer.0.weight.momentum_buffer"; an optimizer that
// is added without a name has "optimizer". Numbers are scalars i64 or f64.
//
// Save() writes another file beside `path`, syncs it and then takes the place
// of `path` in one step: after a crash there is the old file or the new one.
// One rank saves; for values that differ on ranks each needs a path.
//
// Load() reads what Save() or PyTorch has written: a file, or a folder or index
// of shards, with the rules of nn/serialize/weight_file.h (wrappers such as
// "module." before names, other floating dtypes, which are converted). Values
// go to the memory that the tensors have, on whatever device: there is no
// map_location. All names, shapes and kinds are compared before anything is
// changed; an error of reading later leaves some values changed.
//
// An optimizer with f32_master updates f32 copies of 16-bit parameters. If the
// State has the optimizer, so has the file its copies. If not, Load() of a
// Model, DDP or PipelineParallel gives them the file's values, which may have
// more digits than the parameters, also if the optimizer is made later; all
// ranks then load.
// After any other change of a parameter, by Load() of a bare module, by a
// collective or by hand, the next Step() begins with the parameter's value.
//
// Errors: base::StatusError.
//     kInvalidArgument: names are missing, unexpected or of another shape, each
//       of which is listed; a name twice; a tensor without memory
//     kUnavailable: another rank or process is saving to `path`
//     other: from the file system (base/files/file_system.h), with the path
// Lifetime: a State refers to what was added. Threads: one at a time. Both
// calls block, and wait for the device.

#ifndef TROUPE_STATE_H_
#define TROUPE_STATE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/files/file_system.h"
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/kernels.h"
#include "nn/modules/module.h"
#include "nn/serialize/weight_file.h"
#include "nn/tensor/tensor.h"

namespace troupe {

class State;

// Interface of a model whose parameters may have wider copies: a Trainable
// (troupe/model.h).
class SavedModel {
 public:
  // Reads a parameter from a file into host memory of any floating dtype.
  // Returns false if the file does not have it. May be called at any time.
  using ReadFn = std::function<absl::StatusOr<bool>(const nn::Tensor& host)>;

  virtual ~SavedModel() = default;
  virtual nn::Module& module() const = 0;
  // Returns a function that Load() calls before it reads the parameter. It may
  // be called when the object has ended.
  virtual std::function<void(ReadFn read)> WatchReads(
      const nn::Parameter& parameter) const = 0;
};

// Interface of an object with a state of its own: an optimizer, a schedule.
class Saved {
 public:
  virtual ~Saved() = default;
  // Name for a State to which the object is added without one.
  virtual absl::string_view default_name() const { return "state"; }
  // Adds the tensors and numbers to save, and to fill, under names of the
  // object's own.
  virtual void AddTo(State& state) = 0;
  // Called before Save() and Load(): sets the numbers that AddTo() has added to
  // their present values.
  virtual void Refresh() {}
  // Called when Load() has filled all that is in the State, for values that
  // follow from others (f32 master copies of a model's weights).
  virtual void OnLoaded() {}
};

// A tensor or number of a State.
struct StateEntry {
  // Names under which a file may have it; it is saved under the first.
  std::vector<std::string> names;
  nn::Tensor tensor;                         // undefined: a number
  nn::DType number_dtype = nn::DType::kI64;  // kI64 or kF64
  // Write the number to a scalar in host memory, and read it. Unset `read`: it
  // is a constant.
  std::function<absl::Status(const nn::Tensor&)> write = nullptr;
  std::function<absl::Status(const nn::Tensor&)> read = nullptr;
  // For a number that a file may lack; see State::AddOptional().
  struct Optional {
    double* number;
    double absent;
    std::string beside;
  };
  std::optional<Optional> optional = std::nullopt;
  // See SavedModel::WatchReads(); null: a parameter of no such model.
  std::function<void(SavedModel::ReadFn read)> watch = nullptr;
};

class State {
 public:
  // Adds the parameters and buffers of a module, which have memory: under their
  // names, or with "name." before them.
  State& Add(nn::Module& module);
  State& Add(absl::string_view name, nn::Module& module);
  State& Add(const SavedModel& model);
  State& Add(absl::string_view name, const SavedModel& model);
  // Adds what the object adds, with "name." before it, or its default name.
  State& Add(absl::string_view name, Saved& saved);
  State& Add(Saved& saved) { return Add(saved.default_name(), saved); }
  State& Add(absl::string_view name, const nn::Tensor& tensor);
  // Adds the states of an optimizer (nn/optim/optimizer.h) that are in an
  // arena, named as in a job's checkpoints: "0.weight.momentum_buffer".
  State& Add(const nn::ParameterArena& arena);
  // Adds a number or a bool. Load() needs a variable, which it sets; Save()
  // takes constants, too.
  template <typename T, typename = std::enable_if_t<
                            std::is_arithmetic_v<std::remove_reference_t<T>>>>
  State& Add(absl::string_view name, T&& number);
  // Adds a number that is mostly `absent`: Save() leaves it out if it is, and
  // Load() makes it so if the file has the entry `beside` and not this one.
  State& AddOptional(absl::string_view name, double& number, double absent,
                     absl::string_view beside);

  absl::Span<const StateEntry> entries() const { return entries_; }
  absl::Span<Saved* const> saved() const { return saved_; }

 private:
  // `model`: that of the module; null: none.
  State& AddModule(nn::Module& module, const SavedModel* model);
  // Throws if the entry's tensor has no memory, or its name is taken.
  void AddEntry(StateEntry entry);
  // Adds what `other` has, with "name." before it.
  State& AddAll(absl::string_view name, State other);

  std::vector<StateEntry> entries_;
  absl::flat_hash_set<std::string> names_;
  std::vector<Saved*> saved_;
};

struct StateOptions {
  base::FileSystem* files = nullptr;  // null: that of the operating system
  // Kernels of the tensors' device, if the host may not access its memory.
  nn::Kernels* kernels = nullptr;
  // Whether Load() throws if names are missing or unexpected. If not, it leaves
  // what the file lacks as it is. Other shapes are an error in any case.
  bool strict = true;
};

// Save to `path`, in place of a file that is there.
void Save(const State& state, const std::string& path,
          const StateOptions& options = {});
void Save(nn::Module& module, const std::string& path,
          const StateOptions& options = {});
void Save(const SavedModel& model, const std::string& path,
          const StateOptions& options = {});

// Load from `path`, and return what was missing and unexpected (none, if
// options.strict).
nn::WeightDifferences Load(const State& state, const std::string& path,
                           const StateOptions& options = {});
nn::WeightDifferences Load(nn::Module& module, const std::string& path,
                           const StateOptions& options = {});
nn::WeightDifferences Load(const SavedModel& model, const std::string& path,
                           const StateOptions& options = {});

namespace state_internal {

// Write a number to a scalar, and read it. kInvalidArgument: it does not fit.
absl::Status WriteInteger(bool is_unsigned, std::uint64_t bits,
                          const nn::Tensor& scalar);
absl::Status WriteFloat(double value, const nn::Tensor& scalar);
std::int64_t ReadInteger(const nn::Tensor& scalar);
double ReadFloat(const nn::Tensor& scalar);
absl::Status DoesNotFit(std::int64_t value);

template <typename T>
absl::Status Write(T value, const nn::Tensor& scalar) {
  if constexpr (std::is_floating_point_v<T>) {
    return WriteFloat(value, scalar);
  } else {
    return WriteInteger(std::is_unsigned_v<T>,
                        static_cast<std::uint64_t>(value), scalar);
  }
}

template <typename T>
absl::Status Read(const nn::Tensor& scalar, T& number) {
  if constexpr (std::is_floating_point_v<T>) {
    number = static_cast<T>(ReadFloat(scalar));
  } else {
    const std::int64_t value = ReadInteger(scalar);
    const T narrow = static_cast<T>(value);
    if (static_cast<std::int64_t>(narrow) != value ||
        (std::is_unsigned_v<T> && value < 0)) {
      return DoesNotFit(value);
    }
    number = narrow;
  }
  return absl::OkStatus();
}

}  // namespace state_internal

template <typename T, typename>
State& State::Add(absl::string_view name, T&& number) {
  using Value = std::remove_cv_t<std::remove_reference_t<T>>;
  constexpr bool kVariable = std::is_lvalue_reference_v<T> &&
                             !std::is_const_v<std::remove_reference_t<T>>;
  StateEntry entry;
  entry.names = {std::string(name)};
  entry.number_dtype =
      std::is_floating_point_v<Value> ? nn::DType::kF64 : nn::DType::kI64;
  if constexpr (kVariable) {
    Value* const variable = &number;
    entry.write = [variable](const nn::Tensor& scalar) {
      return state_internal::Write(*variable, scalar);
    };
    entry.read = [variable](const nn::Tensor& scalar) {
      return state_internal::Read(scalar, *variable);
    };
  } else {
    entry.write = [value = Value(number)](const nn::Tensor& scalar) {
      return state_internal::Write(value, scalar);
    };
  }
  AddEntry(std::move(entry));
  return *this;
}

}  // namespace troupe

#endif  // TROUPE_STATE_H_
