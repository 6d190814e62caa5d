#include "tools/trainer/commands/help.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tools/trainer/config/config_keys.h"
#include "tools/trainer/terminal/exit_codes.h"

namespace troupe::tools {
namespace {

constexpr std::size_t kColumns = 80;

constexpr char kGeneralHelp[] =
    R"(trainer trains neural networks on several ranks at once.

  trainer train [--config=FILE] [options] train, as file and options say
  trainer evaluate --checkpoint=DIR [--config=FILE] [options]
                                          loss and accuracy of a checkpoint
  trainer generate --checkpoint=DIR [--config=FILE] [--prompt=TEXT]
                                          text of a language model
  trainer predict --checkpoint=DIR [--config=FILE] IMAGE...
                                          the classes of images
  trainer plan [--config=FILE] [options]  stages, schedule, step and memory of a
                                          run that has not begun
  trainer profile [--config=FILE] [options]
                                          where the time of a step goes
  trainer report RUN-DIR [--output=FILE]  a page of a run: executed and planned
                                          steps, waiting, memory, curves
  trainer launch --nproc-per-node=K -- train ...
                                          the same by K processes, on one node
                                          or on several
  trainer certs --dir=DIR [--hosts=A,B]   certificates for several nodes
  trainer doctor [--hosts=A,B]            whether a job can run here
  trainer export --checkpoint=DIR --out=FILE
                                          weights for other programs
  trainer help train                      every option and configuration key
  trainer help evaluate|generate|predict|plan|profile|report|launch|certs|
      doctor|export                       every option of these
  trainer help                            this text
  trainer --version                       the version of Troupe

To begin, with drawn digits that need no download:

  trainer train --config=examples/glyphs/glyphs.toml

The same with other values, and then going on from its last checkpoint:

  trainer train --config=examples/glyphs/glyphs.toml --ranks=4 \
      --set optimizer.lr=0.05
  trainer train --config=examples/glyphs/glyphs.toml --resume \
      --set train.epochs=6
)";

constexpr char kTrainOptions[] =
    R"(trainer train [--config=FILE] [options]

Trains as FILE, a TOML file, and the options say. The whole configuration is
checked before anything starts.

Options:
  --config=FILE            The configuration; relative paths in it start from
                           the folder the trainer is started in. /dev/stdin is
                           what a pipe gives.
  --set section.key=value  Sets a key, over the file. May be repeated.
  --ranks=N                So many ranks: sets mesh.dp to N / mesh.pp.
  --resume                 Goes on from the newest checkpoint in checkpoint.dir,
                           or starts where there is none.
  --init-from=FILE         Begins with the weights of a safetensors file, under
                           PyTorch's names: model.init_from.
  --run-dir=DIR            Keeps there what trainer report makes a page of:
                           log.run_dir.
  --trace=FILE             Writes a timeline of a few steps (ui.perfetto.dev).
  --certs=DIR              Certificates of this node; trainer certs makes them.
  --insecure-network       Processes speak without TLS: whoever reaches their
                           ports can end the job, or worse. Refused where
                           process 0 has a public address.
  --process=I --processes=N --master=HOST:PORT
                           This is process I of N, which meet at that address of
                           process 0. Launchers say this in the environment:
                           trainer launch, torchrun, Slurm, Open MPI, Kubernetes
                           (docs/launching.md).
  --print-config           Prints the whole configuration as TOML and stops.
  --summary                Prints the model's layers, shapes and sizes, and
                           stops.
  --help                   This text. --help=markdown: as docs/configuration.md.

Ctrl-C finishes the step, saves and exits; a second Ctrl-C exits at once, unless
it comes within 0.2 s: `timeout -s INT` sends two. SIGTERM and a closed terminal
do as the first Ctrl-C, however often they come. A run that has done all of its
steps when it is stopped ends as usual.
)";

constexpr char kEvaluateHelp[] =
    R"(trainer evaluate --checkpoint=DIR [--config=FILE] [options]

Prints loss and accuracy of a checkpoint on the test samples. Nothing is trained
and nothing written. The configuration is that of the run that wrote it: model,
data and optimizer must be the same; seed and step are the checkpoint's.

Options:
  --checkpoint=DIR         A checkpoint ("checkpoints/glyphs/step-00001024",
                           "checkpoints/glyphs/best"), or a folder of them, of
                           which the newest is taken.
  --config=FILE            As of trainer train; so are the next two.
  --set section.key=value
  --ranks=N
  --help                   This text.
)";

constexpr char kMarkdownIntro[] =
    R"(# Configuration

`trainer train` reads one TOML file; `--set section.key=value` on the command
line goes over it, and may say all there is to say. Unknown keys, wrong types and
sizes that do not fit together are errors, with file and line, before anything
starts. All keys have defaults, except that one of `train.steps` and
`train.epochs` must be set.

```toml
[data]
kind = "glyphs"

[train]
epochs = 3
global_batch_size = 64

[optimizer]
lr = 0.05
momentum = 0.9
```

Sizes are numbers of bytes or texts such as `"25MiB"` (KiB, MiB, GiB, kB, MB,
GB). On the command line texts need no quotes and lists no brackets:
`--set model.kind=mlp --set model.widths=256,128`.

There is no `batch_size`: `train.micro_batch_size` is what one forward of one
stage takes, per rank; `train.global_batch_size` is what one optimizer step
consumes over all replicas.

`trainer train --config=FILE --print-config` prints what a run would use, and
where each value comes from. This page is made by
`trainer train --help=markdown`; a test compares them.
)";

// `text` in lines of at most kColumns, each after `indent` spaces.
std::string Wrapped(absl::string_view text, std::size_t indent) {
  std::string wrapped, line;
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    if (!line.empty() && indent + line.size() + 1 + word.size() > kColumns) {
      absl::StrAppend(&wrapped, std::string(indent, ' '), line, "\n");
      line.clear();
    }
    absl::StrAppend(&line, line.empty() ? "" : " ", word);
  }
  absl::StrAppend(&wrapped, std::string(indent, ' '), line, "\n");
  return wrapped;
}

// "0     The run is complete." and so on.
std::string ExitCodesHelp() {
  constexpr std::size_t kIndent = 6;
  std::string help = "\nExit codes:\n\n";
  for (const ExitMeaning& exit : kExitMeanings) {
    std::string lines = Wrapped(exit.meaning, kIndent);
    const std::string code = absl::StrCat("  ", exit.code);
    absl::StrAppend(&help, lines.replace(0, code.size(), code));
  }
  return help;
}

std::string ExitCodesMarkdown() {
  std::string rows = "\n## Exit codes\n\n| code | meaning |\n| --- | --- |\n";
  for (const ExitMeaning& exit : kExitMeanings) {
    absl::StrAppend(&rows, "| ", exit.code, " | ", exit.meaning, " |\n");
  }
  return rows;
}

std::string KeyHelp(const ConfigKey& key, const TrainerConfig& defaults) {
  return absl::StrCat(
      "  ", std::string(key.key()), " = ", FormatValue(key, defaults), "\n",
      Wrapped(
          absl::StrCat(key.help, " Example: ", key.name, " = ", key.example),
          /*indent=*/6));
}

std::string MarkdownRow(const ConfigKey& key, const TrainerConfig& defaults) {
  const std::string help = absl::StrReplaceAll(key.help, {{"|", "\\|"}});
  return absl::StrCat(
      "| `", std::string(key.key()), "` | ", std::string(key.type()), " | `",
      FormatValue(key, defaults), "` | ", help, " | `", key.example, "` |\n");
}

}  // namespace

std::string GeneralHelp() {
  return absl::StrCat(kGeneralHelp, ExitCodesHelp());
}

std::string EvaluateHelp() {
  return absl::StrCat(kEvaluateHelp, ExitCodesHelp());
}

std::string TrainHelp() {
  const TrainerConfig defaults;
  std::string help = kTrainOptions;
  absl::StrAppend(&help, "\nConfiguration keys, with their defaults:\n");
  for (const ConfigSection& section : ConfigSections()) {
    absl::StrAppend(&help, "\n[", section.name, "]  ", section.help, "\n");
    for (const ConfigKey& key : ConfigKeys()) {
      if (key.section() == section.name) {
        absl::StrAppend(&help, KeyHelp(key, defaults));
      }
    }
  }
  return absl::StrCat(help, ExitCodesHelp());
}

std::string TrainHelpMarkdown() {
  const TrainerConfig defaults;
  std::string page = kMarkdownIntro;
  for (const ConfigSection& section : ConfigSections()) {
    absl::StrAppend(&page, "\n## [", section.name, "]\n\n", section.help,
                    "\n\n| key | type | default | meaning | example |\n",
                    "| --- | --- | --- | --- | --- |\n");
    for (const ConfigKey& key : ConfigKeys()) {
      if (key.section() == section.name) {
        absl::StrAppend(&page, MarkdownRow(key, defaults));
      }
    }
  }
  return absl::StrCat(page, ExitCodesMarkdown());
}

std::string PrintConfig(const LoadedConfig& loaded) {
  std::string toml;
  for (const ConfigSection& section : ConfigSections()) {
    absl::StrAppend(&toml, toml.empty() ? "" : "\n", "[", section.name, "]\n");
    for (const ConfigKey& key : ConfigKeys()) {
      if (key.section() != section.name) continue;
      std::string line = absl::StrCat(std::string(key.key()), " = ",
                                      FormatValue(key, loaded.config));
      if (loaded.IsSet(key.name)) {
        line = absl::StrFormat("%-38s # %s", line, loaded.Where(key.name));
      }
      absl::StrAppend(&toml, line, "\n");
    }
  }
  return toml;
}

}  // namespace troupe::tools
