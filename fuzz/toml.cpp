// The parser of TOML, for all objects that use it.
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
