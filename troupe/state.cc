#include "troupe/state.h"

#include <algorithm>
#include <cstddef>
#include <memory>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/status_error.h"
#include "nn/kernels/device_queues.h"
#include "nn/serialize/safetensors.h"
#include "nn/tensor/caching_allocator.h"
#include "troupe/internal/replace_file.h"

namespace troupe {
namespace {

// Throw an error with the name in front.
void Named(absl::string_view name, const absl::Status& status) {
  if (status.ok()) return;
  throw base::StatusError(
      base::WithMessage(status, absl::StrCat(name, ": ", status.message())));
}
template <typename T>
T Named(absl::string_view name, absl::StatusOr<T> value) {
  Named(name, value.status());
  return *std::move(value);
}

nn::Kernels& KernelsOf(const StateEntry& entry, const StateOptions& options) {
  if (options.kernels != nullptr) return *options.kernels;
  throw base::StatusError(absl::InvalidArgumentError(absl::StrCat(
      entry.names[0], " is in memory of ", entry.tensor.device().ToString(),
      ", which the host may not access; set StateOptions::kernels")));
}

// Returns the entry's values in host memory. Copies from a device are complete
// when `kernels`, if any, are synchronised.
nn::Tensor HostValues(const StateEntry& entry, const StateOptions& options,
                      nn::Allocator& host) {
  const std::string& name = entry.names[0];
  if (!entry.tensor.defined()) {
    const nn::Tensor scalar =
        Named(name, nn::Tensor::Create(nn::Shape(), entry.number_dtype, host));
    Named(name, entry.write(scalar));
    return scalar;
  }
  if (entry.tensor.host_accessible()) return entry.tensor;
  return Named(name, nn::CopyToHost(KernelsOf(entry, options),
                                    nn::Queue::kCompute, entry.tensor));
}

void Synchronize(nn::Kernels* kernels) {
  if (kernels == nullptr) return;
  base::OrThrow(
      nn::Synchronize(*kernels, nn::Record(*kernels, nn::Queue::kCompute)));
}

nn::TensorSpec SpecOf(const StateEntry& entry) {
  if (!entry.tensor.defined()) return {nn::Shape(), entry.number_dtype};
  return {entry.tensor.shape(), entry.tensor.dtype()};
}

std::vector<nn::WantedWeight> WantedOf(const State& state) {
  std::vector<nn::WantedWeight> wanted;
  wanted.reserve(state.entries().size());
  for (const StateEntry& entry : state.entries()) {
    wanted.push_back({{entry.names.begin(), entry.names.end()}, SpecOf(entry)});
  }
  return wanted;
}

// Fills the entry from the file, if that has it.
void Fill(const StateEntry& entry, const nn::WeightFile& file,
          const nn::WantedWeight& wanted, const StateOptions& options,
          nn::Allocator& host) {
  if (entry.tensor.defined() && entry.tensor.host_accessible()) {
    base::OrThrow(file.Read(wanted, entry.tensor));
    return;
  }
  const std::string& name = entry.names[0];
  const bool is_number = !entry.tensor.defined();
  nn::Allocator& memory =
      is_number ? host : nn::HostAllocator(KernelsOf(entry, options));
  const nn::Tensor values = Named(
      name, nn::Tensor::Create(wanted.spec.shape, wanted.spec.dtype, memory));
  if (!base::OrThrow(file.Read(wanted, values))) return;
  if (is_number) {
    Named(name, entry.read(values));
    return;
  }
  nn::CopyBytes(*options.kernels, nn::Queue::kCompute, values, entry.tensor);
  Synchronize(options.kernels);
}

// Removes optional entries from the names of those that a file lacks. Returns
// those of them that the file has as absent.
std::vector<const StateEntry::Optional*> TakeAbsent(
    const State& state, std::vector<std::string>& missing) {
  const absl::flat_hash_set<std::string> lacks(missing.begin(), missing.end());
  absl::flat_hash_set<std::string> taken;
  std::vector<const StateEntry::Optional*> absent;
  for (const StateEntry& entry : state.entries()) {
    if (!entry.optional.has_value() || !lacks.contains(entry.names[0]))
      continue;
    taken.insert(entry.names[0]);
    if (!lacks.contains(entry.optional->beside)) {
      absent.push_back(&*entry.optional);
    }
  }
  missing.erase(std::remove_if(missing.begin(), missing.end(),
                               [&taken](const std::string& name) {
                                 return taken.contains(name);
                               }),
                missing.end());
  return absent;
}

// Returns a function that reads the tensor of these names again.
SavedModel::ReadFn ReaderOf(std::shared_ptr<const nn::WeightFile> file,
                            std::vector<std::string> names) {
  return [file = std::move(file), names = std::move(names)](
             const nn::Tensor& into) -> absl::StatusOr<bool> {
    return file->Read(
        {{names.begin(), names.end()}, {into.shape(), into.dtype()}}, into);
  };
}

// Throws if the entry cannot be filled, whatever the file has.
void CheckCanBeFilled(const StateEntry& entry, const StateOptions& options) {
  if (!entry.tensor.defined() && entry.read == nullptr) {
    throw base::StatusError(absl::InvalidArgumentError(
        absl::StrCat(entry.names[0],
                     " was added as a constant; add a variable for Load() to "
                     "set")));
  }
  if (entry.tensor.defined() && !entry.tensor.host_accessible()) {
    KernelsOf(entry, options);
  }
}

}  // namespace

State& State::Add(nn::Module& module) {
  return AddModule(module, /*model=*/nullptr);
}

State& State::Add(const SavedModel& model) {
  return AddModule(model.module(), &model);
}

State& State::AddModule(nn::Module& module, const SavedModel* model) {
  for (nn::Parameter* p : module.Parameters()) {
    StateEntry entry;
    entry.names = {p->name};
    entry.names.insert(entry.names.end(), p->other_names.begin(),
                       p->other_names.end());
    entry.tensor = p->value;
    if (model != nullptr) entry.watch = model->WatchReads(*p);
    AddEntry(std::move(entry));
  }
  for (nn::Buffer* b : module.Buffers()) Add(b->name, b->value);
  return *this;
}

State& State::Add(absl::string_view name, nn::Module& module) {
  State inner;
  inner.Add(module);
  return AddAll(name, std::move(inner));
}

State& State::Add(absl::string_view name, const SavedModel& model) {
  State inner;
  inner.Add(model);
  return AddAll(name, std::move(inner));
}

State& State::Add(absl::string_view name, Saved& saved) {
  State inner;
  saved.AddTo(inner);
  inner.saved_.push_back(&saved);
  return AddAll(name, std::move(inner));
}

State& State::Add(absl::string_view name, const nn::Tensor& tensor) {
  StateEntry entry;
  entry.names = {std::string(name)};
  entry.tensor = tensor;
  AddEntry(std::move(entry));
  return *this;
}

State& State::AddOptional(absl::string_view name, double& number, double absent,
                          absl::string_view beside) {
  Add(name, number);
  entries_.back().optional = {&number, absent, std::string(beside)};
  return *this;
}

State& State::Add(const nn::ParameterArena& arena) {
  for (const nn::ArenaSlot& slot : arena.slots()) {
    for (const auto& [state_name, state] : arena.states()) {
      Add(absl::StrCat(slot.parameter->name, ".", state_name),
          arena.View(state, slot));
    }
  }
  return *this;
}

void State::AddEntry(StateEntry entry) {
  const std::string& name = entry.names[0];
  const bool is_number = entry.write != nullptr;
  if (!is_number && (!entry.tensor.defined() || entry.tensor.is_meta())) {
    throw base::StatusError(absl::InvalidArgumentError(absl::StrCat(
        name,
        " has no memory; give the model memory (nn/arena/parameter_arena.h, "
        "BindBuffers) before it is added to a State")));
  }
  if (!names_.insert(name).second) {
    throw base::StatusError(absl::InvalidArgumentError(
        absl::StrCat("a State has two entries called ", name,
                     "; add one of them under another name")));
  }
  entries_.push_back(std::move(entry));
}

State& State::AddAll(absl::string_view name, State other) {
  for (StateEntry& entry : other.entries_) {
    for (std::string& each : entry.names) each = absl::StrCat(name, ".", each);
    if (entry.optional.has_value()) {
      entry.optional->beside = absl::StrCat(name, ".", entry.optional->beside);
    }
    AddEntry(std::move(entry));
  }
  saved_.insert(saved_.end(), other.saved_.begin(), other.saved_.end());
  return *this;
}

void Save(const State& state, const std::string& path,
          const StateOptions& options) {
  for (Saved* saved : state.saved()) saved->Refresh();
  nn::CachingAllocator host;
  std::vector<nn::NamedTensor> tensors;
  for (const StateEntry& entry : state.entries()) {
    const auto& optional = entry.optional;
    if (optional.has_value() && *optional->number == optional->absent) continue;
    tensors.push_back({entry.names[0], HostValues(entry, options, host)});
  }
  Synchronize(options.kernels);
  base::PosixFileSystem system;
  base::FileSystem& files = options.files != nullptr ? *options.files : system;
  base::OrThrow(ReplaceFile(files, path, [&](const std::string& temporary) {
    return nn::WriteSafetensors(files, temporary, tensors, {{"format", "pt"}});
  }));
}

void Save(nn::Module& module, const std::string& path,
          const StateOptions& options) {
  Save(State().Add(module), path, options);
}

void Save(const SavedModel& model, const std::string& path,
          const StateOptions& options) {
  Save(State().Add(model), path, options);
}

nn::WeightDifferences Load(const State& state, const std::string& path,
                           const StateOptions& options) {
  for (Saved* saved : state.saved()) saved->Refresh();
  for (const StateEntry& entry : state.entries()) {
    CheckCanBeFilled(entry, options);
  }
  base::PosixFileSystem system;
  base::FileSystem& files = options.files != nullptr ? *options.files : system;
  const auto file = std::make_shared<const nn::WeightFile>(
      base::OrThrow(nn::WeightFile::Open(files, path)));
  const std::vector<nn::WantedWeight> wanted = WantedOf(state);
  nn::WeightDifferences differences = file->Compare(wanted);
  const auto absent = TakeAbsent(state, differences.missing);
  if (options.strict ? differences.any() : !differences.mismatched.empty()) {
    throw base::StatusError(absl::InvalidArgumentError(absl::StrCat(
        path, " has another state than the one to load; ",
        differences.ToString(),
        "; add to the State what was saved, or unset StateOptions::strict")));
  }
  for (const StateEntry::Optional* optional : absent) {
    *optional->number = optional->absent;
  }
  // Before an optimizer's own copies are filled, whatever the order in the
  // State is.
  for (const StateEntry& entry : state.entries()) {
    if (entry.watch) entry.watch(ReaderOf(file, entry.names));
  }
  nn::CachingAllocator host;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Fill(state.entries()[i], *file, wanted[i], options, host);
  }
  for (Saved* saved : state.saved()) saved->OnLoaded();
  return differences;
}

nn::WeightDifferences Load(nn::Module& module, const std::string& path,
                           const StateOptions& options) {
  return Load(State().Add(module), path, options);
}

nn::WeightDifferences Load(const SavedModel& model, const std::string& path,
                           const StateOptions& options) {
  return Load(State().Add(model), path, options);
}

namespace state_internal {

absl::Status WriteInteger(bool is_unsigned, std::uint64_t bits,
                          const nn::Tensor& scalar) {
  const auto value = static_cast<std::int64_t>(bits);
  if (is_unsigned && value < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(bits,
                     " is more than the largest i64 of a file; save it "
                     "as two numbers"));
  }
  scalar.data<std::int64_t>()[0] = value;
  return absl::OkStatus();
}

absl::Status WriteFloat(double value, const nn::Tensor& scalar) {
  scalar.data<double>()[0] = value;
  return absl::OkStatus();
}

std::int64_t ReadInteger(const nn::Tensor& scalar) {
  return scalar.data<std::int64_t>()[0];
}

double ReadFloat(const nn::Tensor& scalar) { return scalar.data<double>()[0]; }

absl::Status DoesNotFit(std::int64_t value) {
  return absl::InvalidArgumentError(absl::StrCat(
      value,
      " of the file does not fit into the variable; use a std::int64_t"));
}

}  // namespace state_internal
}  // namespace troupe
