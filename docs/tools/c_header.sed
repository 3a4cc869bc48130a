# The C header for the reference: comments become documentation, the first one the file's, and an enum gets the name of the
# typedef before it.
1s#^/\*#/** @file\n *#
/^typedef int32_t [a-z_]*;$/{
N
s#^typedef int32_t ([a-z_]*);\nenum \{#enum \1 {#
}
s#^( *)/\* ([^-])#\1/** \2#
s#([;,{]) +/\* #\1 /**< #
s#^(  THRESHER_[A-Z_0-9]* = [0-9]+) +/\* #\1 /**< #
