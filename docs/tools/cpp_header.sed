# A public C++ header for the reference: its first comment is the file's, and what only the library uses is left out.
/^#pragma once/{n;s#^/// #/// @file\n/// #}
/^namespace detail {/,/^}  \/\/ namespace detail/d
/^namespace thresher::ops {/,/^}  \/\/ namespace thresher::ops/d
/^  \(using\|class\) \(Backend\|Storage\)\b/,/_(std::move(\(backend\|storage\)))/d
/\b\(storage\|shared\)() const noexcept/d
/explicit LayerProduct(/d
/^\/\/ So that a hash map/,$d
s# = detail::formats_that<[^;]*;#;#
