#include "tools/trainer/commands/help.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tools/trainer/config/config_keys.h"
#include "tools/trainer/terminal/exit_codes.h"

namespace troupe::tools {
namespace {

constexpr std::size_t kColumns = 80;

constexpr char kGeneralIntro[] =
    "trainer trains neural networks on several ranks at once.\n\n";

constexpr char kGeneralExamples[] =
    R"(To begin, with drawn digits that need no download:

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
  --ranks=N                So many ranks: sets mesh.dp to
                           N / (mesh.pp * mesh.tp).
  --deepspeed=FILE         A configuration of DeepSpeed: what it has in common
                           with the trainer's is set, over the file, and the
                           rest is named (docs/deepspeed.md).
  --resume                 Goes on from the newest checkpoint in checkpoint.dir,
                           or starts where there is none.
  --init-from=FILE         Begins with the weights of a file (safetensors,
                           torch.save, llm.c), or of a folder, under
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
it comes within 0.2 s: `timeout -s INT` sends two. SIGTERM, SIGUSR1, SIGUSR2,
SIGXCPU and a closed terminal do as the first Ctrl-C, however often they come. A
run that has done all of its steps when it is stopped ends as usual.
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

The column "values" has the accepted texts, or the type and its limits; what must
fit together is checked before anything starts. Sizes are numbers of bytes or texts
such as `"25MiB"` (KiB, MiB, GiB, kB, MB, GB). On the command line texts need no
quotes and lists no brackets: `--set model.kind=mlp --set model.widths=256,128`.

There is no `batch_size`: `train.micro_batch_size` is what one forward of one
stage takes, per rank; `train.global_batch_size` is what one optimizer step
consumes over all replicas.

`trainer train --config=FILE --print-config` prints what a run would use, and
where each value comes from. This page is made by
`trainer train --help=markdown`; a test compares them.
)";

// Returns `text` in lines of at most kColumns, each behind `indent` spaces.
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

// Returns `usage` behind two spaces, and `meaning` in a column to its right, or
// below where it is long.
std::string UsageLines(absl::string_view usage, absl::string_view meaning) {
  constexpr std::size_t kColumn = 42;
  const std::string line = absl::StrCat("  ", usage);
  std::string lines = Wrapped(meaning, kColumn);
  if (line.size() >= kColumn) return absl::StrCat(line, "\n", lines);
  return lines.replace(0, line.size(), line);
}

// Returns how to ask for the help of each command but the first.
std::string HelpTopics(absl::Span<const Command> commands) {
  std::string lines, line = "trainer help ";
  for (std::size_t i = 1; i < commands.size(); ++i) {
    const std::string word =
        absl::StrCat(commands[i].name, i + 1 < commands.size() ? "|" : "");
    if (2 + line.size() + word.size() > kColumns) {
      absl::StrAppend(&lines, "  ", line, "\n");
      line = "    ";
    }
    absl::StrAppend(&line, word);
  }
  return absl::StrCat(lines, UsageLines(line, "every option of these"));
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
      Wrapped(absl::StrCat(key.help, " Values: ", key.Values(),
                           ". Example: ", key.name, " = ", key.example),
              /*indent=*/6));
}

std::string MarkdownRow(const ConfigKey& key, const TrainerConfig& defaults) {
  const std::string help = absl::StrReplaceAll(key.help, {{"|", "\\|"}});
  return absl::StrCat("| `", std::string(key.key()), "` | ", key.Values(),
                      " | `", FormatValue(key, defaults), "` | ", help, " | `",
                      key.example, "` |\n");
}

}  // namespace

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

std::string GeneralHelp(absl::Span<const Command> commands) {
  std::string help = kGeneralIntro;
  for (const Command& command : commands) {
    absl::StrAppend(&help, UsageLines(absl::StrCat("trainer ", command.name,
                                                   " ", command.usage),
                                      command.summary));
  }
  return absl::StrCat(
      help,
      UsageLines(absl::StrCat("trainer help ", commands[0].name),
                 "every option and configuration key"),
      HelpTopics(commands), UsageLines("trainer help", "this text"),
      UsageLines("trainer --version", "the version of Troupe"), "\n",
      kGeneralExamples, ExitCodesHelp());
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
                    "\n\n| key | values | default | meaning | example |\n",
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
