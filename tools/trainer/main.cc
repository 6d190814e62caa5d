#include "tools/trainer/trainer_main.h"

int main(int argc, char** argv) {
  return troupe::tools::TrainerMain(argc, argv);
}
