#include "arena/pitches/argument_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "arena/operations.hpp"
#include "arena/pitches/call_structure.hpp"

namespace thresher::arena::user_kernels {
namespace {

constexpr const char* of_workspace = "what the pitch asked for, with anything in it; null when it asked for nothing";

std::string about(const Argument& argument) {
  std::string text = argument.about;
  if (argument.kind == ArgumentKind::format) {
    return text + "; THRESHER_OWN_FP32 and so on";
  }
  for (std::size_t i = 0; i < argument.choices.size(); ++i) {
    text += fmt::format("{}{} {}", i > 0 ? ", " : text.empty() ? "" : ": ", i, argument.choices[i]);
  }
  return text;
}

std::string member(const std::string& text, const std::string& declaration) {
  return (text.empty() ? "" : fmt::format("  /* {} */\n", text)) + "  " + declaration + ";\n";
}

std::string members(const Argument& argument) {
  const std::string& name = argument.name;
  switch (argument.kind) {
    case ArgumentKind::tensor: return member(about(argument), "thresher_own_tensor " + name);
    case ArgumentKind::matrix: return member(about(argument), "thresher_own_matrix " + name);
    case ArgumentKind::output_matrix:
      return member(about(argument), "void* " + name) +
             member("elements from one row to the next", "long long " + name + "_row_stride") +
             member("", "int " + name + "_format");
    case ArgumentKind::extent: return member(about(argument), "long long " + name);
    case ArgumentKind::number: return member(about(argument), "float " + name);
    default: break;
  }
  return member(about(argument), "int " + name);
}

std::string structure(const Operation& operation) {
  std::string text = fmt::format("struct {} {{\n", structure_name(operation));
  for (const Argument& argument : arguments_of(operation)) {
    text += members(argument);
  }
  return text + member(of_workspace, "void* workspace") + member("", "long long workspace_bytes") + "};\n";
}

std::string type_in_c(const Argument& argument) {
  switch (argument.kind) {
    case ArgumentKind::tensor: return "`thresher_own_tensor`";
    case ArgumentKind::matrix: return "`thresher_own_matrix`";
    case ArgumentKind::output_matrix: return fmt::format("`void*`, `{0}_row_stride`, `{0}_format`", argument.name);
    case ArgumentKind::extent: return "`long long`";
    case ArgumentKind::number: return "`float`";
    default: break;
  }
  return "`int`";
}

std::string type_in_python(const Argument& argument) {
  switch (argument.kind) {
    case ArgumentKind::extent: return "";
    case ArgumentKind::integer: return "int";
    case ArgumentKind::flag: return "bool";
    case ArgumentKind::choice:
    case ArgumentKind::format: return "str";
    case ArgumentKind::number: return "float";
    default: break;
  }
  return argument.is_optional ? "array or None" : "array";
}

/// The value of a problem whose kernels need not take the argument.
std::string usual_text(const Argument& argument) {
  if (!argument.usual) {
    return "";
  }
  return argument.kind == ArgumentKind::choice ? argument.choices.front()
         : argument.kind == ArgumentKind::flag ? "False"
                                               : fmt::format("{:g}", *argument.usual);
}

std::vector<std::string> required(const std::vector<Argument>& arguments, bool are_outputs) {
  std::vector<std::string> names;
  for (const Argument& argument : arguments) {
    if (argument.is_tensor() && !argument.is_optional && (argument.role == ArgumentRole::output) == are_outputs) {
      names.push_back(argument.name);
    }
  }
  return names;
}

std::string section(const Operation& operation) {
  const std::vector<Argument> arguments = arguments_of(operation);
  const std::string name = structure_name(operation);
  std::string text = fmt::format("## {}\n\n", operation.name());
  text += fmt::format(
      "```text\n.cu    extern \"C\" __global__ void mine({0} call)\n.cpp   extern \"C\" void mine(const {0}* call)\n"
      ".py    def mine({1}, out)\n```\n\n",
      name, fmt::join(required(arguments, false), ", "));
  text += "| member | in C | in Python | without the parameter | meaning |\n|---|---|---|---|---|\n";
  for (const Argument& argument : arguments) {
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", argument.name, type_in_c(argument), type_in_python(argument),
                        usual_text(argument), about(argument));
  }
  return text +
         fmt::format("\nFormats in a pitch: `formats = [\"{}\"]`.\n\n", operation.formats_text(operation.example()));
}

template <class Part>
std::string of_each_operation(const Part& part) {
  std::string text;
  for (const Operation* const operation : operations()) {
    text += part(*operation);
  }
  return text;
}

}  // namespace

std::string calls_header() {
  return "/* The structures that kernels of your own are given, one for each operation. thresher/own_kernel.h includes "
         "it.\n"
         " * Written by `thresher kernel-arguments --header`: do not edit. */\n#pragma once\n" +
         of_each_operation([](const Operation& operation) { return "\n" + structure(operation); });
}

std::string arguments_page() {
  std::string text = of_each_operation(section);
  text.pop_back();
  return text;
}

}  // namespace thresher::arena::user_kernels
