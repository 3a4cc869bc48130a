// The TOML parser's implementation, for all objects that use it.
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
