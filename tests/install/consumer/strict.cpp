// Code whose author lets no warning pass, those in headers of others included.
#include "thresher/own_kernel.h"
#include "thresher/thresher.h"
#include "thresher/thresher.hpp"
