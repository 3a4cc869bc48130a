#pragma once
/// Untrusted text, made safe for a terminal.
#include <cstddef>
#include <string>
#include <string_view>

namespace thresher {

/// `text` with '?' for characters that a terminal would obey instead of showing. They are control characters (C0, DEL,
/// C1; line feeds and tabs too), marks that change direction or have no width, and bytes that are not UTF-8.
[[nodiscard]] std::string printable(std::string_view text);

/// The same for a name in a sentence: in quotes, and at most 120 characters.
[[nodiscard]] std::string quoted_name(std::string_view name);

/// `printable` for a text of several lines; line feeds and tabs stay.
[[nodiscard]] std::string printable_lines(std::string_view text);

/// The longest prefix of `text`, which is printable, that fits into `columns` columns of a terminal.
[[nodiscard]] std::string_view first_columns(std::string_view text, std::size_t columns) noexcept;

[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

}  // namespace thresher
