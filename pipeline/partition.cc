#include "pipeline/partition.h"

#include <algorithm>
#include <typeinfo>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/type_name.h"
#include "nn/modules/localise.h"
#include "nn/modules/sequential.h"

namespace troupe::pipeline {
namespace {

// Limit on the names that an error lists.
constexpr int kNamesShownMax = 16;

// A module that was found inside the model.
struct Place {
  nn::Sequential::Path numbers;
  std::vector<std::string> names;

  std::string path() const { return absl::StrJoin(names, "."); }
};

absl::Status Wrong(const Cut& cut, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("cut ", cut.ToString(), what));
}

absl::StatusOr<std::unique_ptr<nn::Module>> MakeModel(
    const nn::ModelFactory& factory) {
  std::unique_ptr<nn::Module> model = factory();
  if (model == nullptr) {
    return absl::InvalidArgumentError(
        "the ModelFactory returned null; return a module from it");
  }
  // Recorded before any cut: full names, and names used in another stage.
  TROUPE_RETURN_IF_ERROR(model->CheckDeclarations());
  model->Parameters();
  return model;
}

std::string ChildNames(const nn::Module& module) {
  std::string names;
  const int count = static_cast<int>(module.children().size());
  for (int i = 0; i < std::min(count, kNamesShownMax); ++i) {
    absl::StrAppend(&names, " ", module.children()[i]->name());
  }
  return absl::StrCat(names, count > kNamesShownMax ? " ..." : "");
}

// "the model" or "module features"
std::string Called(const Place& place) {
  return place.names.empty() ? "the model"
                             : absl::StrCat("module ", place.path());
}

// Steps into the child with which `rest` begins, and removes its name from
// `rest`. Returns true if `rest` is then empty.
absl::StatusOr<bool> Enter(const Cut& cut, const nn::Module*& module,
                           Place& place, absl::string_view& rest) {
  if (dynamic_cast<const nn::Sequential*>(module) == nullptr) {
    return Wrong(cut, absl::StrCat(": ", Called(place), " is a ",
                                   base::TypeName(typeid(*module)),
                                   ", and only a Sequential can be cut; cut "
                                   "before it or behind it"));
  }
  for (std::size_t i = 0; i < module->children().size(); ++i) {
    const nn::Module* child = module->children()[i].get();
    const bool last = rest == child->name();
    const std::string prefix = absl::StrCat(child->name(), ".");
    if (!last && !absl::ConsumePrefix(&rest, prefix)) continue;
    place.numbers.push_back(static_cast<int>(i));
    place.names.push_back(child->name());
    module = child;
    return last;
  }
  return Wrong(cut, absl::StrCat(": ", Called(place), " has no child \"", rest,
                                 "\"; it has", ChildNames(*module)));
}

absl::StatusOr<Place> FindNumber(const nn::Module& model, int number) {
  const int size = static_cast<int>(model.children().size());
  if (number > 0 && number < size) {
    const std::string& name = model.children()[number]->name();
    if (!name.empty()) return Place{{number}, {name}};
    return Wrong(number,
                 absl::StrCat(" stands before a module without a name; "
                              "cut at ",
                              number + 1 < size ? number + 1 : number - 1));
  }
  return Wrong(number, absl::StrCat(" is not inside the model: cuts must be "
                                    "between 1 and ",
                                    size - 1, " for a Sequential of ", size));
}

absl::StatusOr<Place> FindPath(const nn::Module& model,
                               const std::string& path) {
  Place place;
  const nn::Module* module = &model;
  absl::string_view rest = path;
  bool there = false;
  while (!there) {
    TROUPE_ASSIGN_OR_RETURN(there, Enter(path, module, place, rest));
  }
  // A Sequential begins with its first child.
  while (!place.numbers.empty() && place.numbers.back() == 0) {
    place.numbers.pop_back();
    place.names.pop_back();
  }
  if (!place.numbers.empty()) return place;
  return Wrong(path,
               " is where the model begins, as the first stage does; leave it "
               "out");
}

// Finds all cuts; they ascend.
absl::StatusOr<std::vector<Place>> FindAll(const nn::Module& model,
                                           absl::Span<const Cut> cuts) {
  if (dynamic_cast<const nn::Sequential*>(&model) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("only a Sequential can be cut into stages, not a ",
                     base::TypeName(typeid(model)),
                     "; make the model one, or leave it whole"));
  }
  std::vector<Place> places;
  for (const Cut& cut : cuts) {
    const int* number = std::get_if<int>(&cut.at);
    TROUPE_ASSIGN_OR_RETURN(
        Place place, number != nullptr
                         ? FindNumber(model, *number)
                         : FindPath(model, std::get<std::string>(cut.at)));
    if (!places.empty() && place.numbers <= places.back().numbers) {
      return Wrong(cut, absl::StrCat(" does not stand behind cut ",
                                     cuts[places.size() - 1].ToString(),
                                     "; put them in order"));
    }
    places.push_back(std::move(place));
  }
  return places;
}

// Gives a part its own copy of a parameter that it shares with other parts. The
// name in the whole model identifies the copies as one parameter.
void KeepSharedNames(nn::Module& model) {
  for (nn::Parameter* parameter : model.Parameters()) {
    parameter->keeps_names = !parameter->other_names.empty();
  }
}

}  // namespace

std::string Cut::ToString() const {
  const int* number = std::get_if<int>(&at);
  return number != nullptr
             ? absl::StrCat(*number)
             : absl::StrCat("\"", std::get<std::string>(at), "\"");
}

absl::StatusOr<std::vector<std::string>> ResolveCuts(
    const nn::ModelFactory& factory, absl::Span<const Cut> cuts) {
  std::vector<std::string> begins;
  if (cuts.empty()) return begins;
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<nn::Module> model,
                          MakeModel(factory));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<Place> places,
                          FindAll(*model, cuts));
  for (const Place& place : places) begins.push_back(place.path());
  return begins;
}

std::vector<nn::AxisPlace> PlacesOf(const Mesh& mesh, int rank,
                                    bool sequence_parallel, int depth_blocks) {
  if (mesh.tp() == 1 && depth_blocks == 1) return {};
  return {{"tp", mesh.CoordOf(rank, kTpAxis), mesh.tp(), sequence_parallel,
           depth_blocks}};
}

absl::StatusOr<std::unique_ptr<nn::Module>> BuildStage(
    const nn::ModelFactory& factory, absl::Span<const std::string> begins,
    int stage, absl::Span<const nn::AxisPlace> places) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<nn::Module> model,
                          MakeModel(factory));
  if (!places.empty()) {
    TROUPE_RETURN_IF_ERROR(nn::LocaliseModel(*model, places));
  }
  if (begins.empty()) return model;
  const std::vector<Cut> cuts(begins.begin(), begins.end());
  TROUPE_ASSIGN_OR_RETURN(const std::vector<Place> found,
                          FindAll(*model, cuts));
  std::vector<nn::Sequential::Path> paths;
  for (const Place& place : found) paths.push_back(place.numbers);
  KeepSharedNames(*model);
  std::unique_ptr<nn::Sequential> whole(
      static_cast<nn::Sequential*>(model.release()));
  TROUPE_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<nn::Sequential>> parts,
                          nn::Sequential::Cut(std::move(whole), paths));
  return std::unique_ptr<nn::Module>(std::move(parts[stage]));
}

}  // namespace troupe::pipeline
