#include "tools/trainer/config/data_keys.h"

#include "actors/spec/job_spec.h"
#include "base/field_error.h"
#include "data/images/image_splits.h"
#include "data/registry.h"
#include "data/sampler.h"
#include "data/text/text_splits.h"
#include "data/text/token_windows.h"
#include "data/text/vocabulary_file.h"
#include "tools/trainer/config/key_rules.h"

namespace troupe::tools {
namespace {

using C = TrainerConfig;
using actors::JobSpec;
using data::DatasetOptions;
using data::ImageOptions;
using data::TextOptions;
using data::TrainingPartOptions;

template <auto kField>
constexpr KeyField Text() {
  return Field<&C::data, &DatasetOptions::text, kField>();
}

template <auto kField>
constexpr KeyField Part() {
  return Field<&C::data, &DatasetOptions::part, kField>();
}

template <auto kField>
constexpr KeyField Images() {
  return Field<&C::data, &DatasetOptions::images, kField>();
}

constexpr ConfigKey kDataKeys[] = {
    {"data.kind", Field<&C::data, &DatasetOptions::kind>(),
     OneOf(data::DatasetKinds),
     "The data set. \"glyphs\" (drawn digits), \"synthetic\" and \"text\" need "
     "no "
     "files.",
     "\"mnist\""},
    {"data.path", Field<&C::data, &DatasetOptions::path>(), kPath,
     "Where the samples are: the folder of \"mnist\" or \"cifar10\"; the file "
     "of \"text\" (without one: sources of Troupe); the file of \"tokens\", or "
     "the folder of its train.bin and val.bin, or a pattern of several files "
     "(shards/*.bin), which are one after the other; the folder of "
     "\"images\", which has a folder for each class, or train and val with "
     "such folders. Relative to the folder the trainer is started in.",
     "\"data/mnist\""},
    {"data.train_count", Field<&C::data, &DatasetOptions::train_count>(),
     AtMost(kCountMax),
     "Use only the first so many training samples; 0 means all.", "8000",
     CopiedTo<&data::SamplerOptions::dataset_size>},
    {"data.test_count", Field<&C::data, &DatasetOptions::test_count>(),
     AtMost(kCountMax), "Use only the first so many test samples; 0 means all.",
     "2000"},
    {"data.seed", Field<&C::data, &DatasetOptions::seed>(), kFromZero,
     "Seed of generated data, of augmentation, of random windows and of what "
     "is "
     "held back of \"images\".",
     "1"},
    {"data.val_fraction", Field<&C::data, &DatasetOptions::val_fraction>(),
     kAny,
     "Part that is held back to test with: the end of \"text\" and of a file "
     "of "
     "\"tokens\", random ones of \"images\" without a folder val; 0 means "
     "none.",
     "0.05"},
    {"data.validation_share", Part<&TrainingPartOptions::validation_share>(),
     kAny,
     "Part of the training samples that is cut from them to test with, drawn "
     "by data.seed, in place of the data's own test samples; not of \"text\" "
     "and \"tokens\". 0 means none.",
     "0.1"},
    {"data.sample_weights", Part<&TrainingPartOptions::sample_weights>(), kPath,
     "A text file with a weight for each training sample, one a line, by which "
     "samples are drawn with replacement, as by PyTorch's "
     "WeightedRandomSampler.",
     "\"weights.txt\""},
    {"data.balance_classes", Part<&TrainingPartOptions::balance_classes>(),
     kAny,
     "Whether samples are drawn with replacement so that every class comes "
     "equally often.",
     "true"},
    {"data.normalize", Field<&C::data, &DatasetOptions::normalize>(), kAny,
     "Whether images get mean 0 and variance 1 per channel.", "false"},
    {"data.augment", Field<&C::data, &DatasetOptions::augment>(), kAny,
     "Whether training images are changed at random: those of \"cifar10\" "
     "shifted and mirrored, those of \"images\" cropped, resized, mirrored and "
     "coloured.",
     "true"},
    {"data.input_shape", Field<&C::data, &DatasetOptions::input_shape>(),
     kExtent,
     "Shape of a sample of \"synthetic\": [length] or [height, width, "
     "channels].",
     "[28, 28, 1]"},
    {"data.num_classes", Field<&C::data, &DatasetOptions::num_classes>(),
     kExtentOrNone,
     "Classes of \"synthetic\"; 0 makes it a regression, trained on the "
     "squared error.",
     "0"},
    {"data.target_dim", Field<&C::data, &DatasetOptions::target_dim>(), kExtent,
     "Length of the target of a \"synthetic\" regression.", "5"},
    {"data.tokenizer", Text<&TextOptions::tokenizer>(),
     OneOf(data::TokenizerNames),
     "What makes tokens of \"text\": \"bytes\", \"chars\" (characters) or "
     "\"gpt2\" "
     "(byte pair encoding).",
     "\"chars\""},
    {"data.tokenizer_path", Text<&TextOptions::tokenizer_path>(), kPath,
     "The folder of vocab.json and merges.txt of \"gpt2\"; or the characters "
     "of "
     "\"chars\" as a JSON file, where empty means those of the text.",
     "\"models/gpt2\""},
    {"data.context", Text<&TextOptions::context>(),
     KeyRule{1, data::kContextMax},
     "Tokens of a sample of \"text\" or \"tokens\".", "64"},
    {"data.window", Text<&TextOptions::window>(), OneOf(data::WindowNames),
     "Where training samples of \"text\" or \"tokens\" begin: \"random\" or "
     "\"sequential\", one behind the other. Those to test with are always "
     "sequential.",
     "\"sequential\""},
    {"data.vocab_size", Text<&TextOptions::vocab_size>(),
     KeyRule{1, data::kVocabSizeMax},
     "How many different tokens \"tokens\" may have.", "65"},
    {"data.token_type", Text<&TextOptions::token_type>(),
     OneOf(data::TokenTypeNames),
     "What the numbers in a file of \"tokens\" without a header are, \"u16\" "
     "or "
     "\"u32\".",
     "\"u32\""},
    {"data.image_size", Images<&ImageOptions::size>(),
     KeyRule{1, data::kImageSizeMax},
     "Height and width of a sample of \"images\".", "64"},
    {"data.resize", Images<&ImageOptions::resize>(),
     KeyRule{1, data::kImageSizeMax},
     "Shorter side that \"images\" get before their middle is cut out, to test "
     "with and without data.augment.",
     "72"},
    {"data.crop_area_min", Images<&ImageOptions::crop_area_min>(), kAny,
     "Least part of the area of \"images\" that a random crop takes, as in "
     "torchvision's RandomResizedCrop.",
     "0.35"},
    {"data.color_jitter", Images<&ImageOptions::color_jitter>(), kAny,
     "Reach of the random factors of brightness, contrast and saturation of "
     "\"images\", as in torchvision's ColorJitter; needs data.augment.",
     "0.4"},
    {"data.hue_jitter", Images<&ImageOptions::hue_jitter>(), kAny,
     "Reach of the random turn of the hues of \"images\", 0 to 0.5; needs "
     "data.augment.",
     "0.1"},
    {"data.drop_last", Field<&C::job, &JobSpec::drop_last>(), kAny,
     "Whether the samples that do not fill a global batch at the end of an "
     "epoch are left out, as by DataLoader's drop_last; else they are a "
     "shorter batch.",
     "false"},
    {"data.workers", Field<&C::job, &JobSpec::load_workers>(), KeyRule{1, 256},
     "Threads of each rank that read and decode samples. The samples are the "
     "same.",
     "4"},
    {"data.prefetch", Field<&C::job, &JobSpec::prefetch_steps>(),
     KeyRule{1, 1024}, "Steps that loaders may be ahead of training.", "8"},
};

}  // namespace

absl::Span<const ConfigKey> DataKeys() { return kDataKeys; }

void FillPadding(TrainerConfig& config) {
  config.data.text.padding_target = config.loss.ignore_index;
}

}  // namespace troupe::tools
