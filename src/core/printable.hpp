#pragma once
/// Text from outside, made fit for a terminal.
#include <cstddef>
#include <string>
#include <string_view>

namespace thresher {

/// `text` with '?' for what a terminal obeys instead of showing: control characters (C0, DEL, C1), marks that turn the
/// direction of text or have no width, and bytes that are not UTF-8. Line feeds and tabs are control characters too.
[[nodiscard]] std::string printable(std::string_view text);

/// The same for a name in a sentence: in quotes, and of at most 120 characters.
[[nodiscard]] std::string quoted_name(std::string_view name);

/// `printable` of a text of several lines, which keeps its line feeds and tabs.
[[nodiscard]] std::string printable_lines(std::string_view text);

/// As much of `text`, which is printable, as is not wider than so many columns of a terminal.
[[nodiscard]] std::string_view first_columns(std::string_view text, std::size_t columns) noexcept;

[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

}  // namespace thresher
