#include "cli/entry.hpp"

int main(int argc, char** argv) { return thresher::cli::run(argc, argv); }
