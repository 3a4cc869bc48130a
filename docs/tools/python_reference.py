"""The directive `python-module`: the public names of a module of python/thresher, read from its source and never imported.

So the site needs neither the built library nor the frameworks.
"""
import ast
import pathlib
import re

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python" / "thresher"


def path_of(module):
    parts = module.split(".")[1:]
    path = PACKAGE.joinpath(*parts)
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def tree_of(module):
    return ast.parse(path_of(module).read_text())


def exported(tree):
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return [one.value for one in node.value.elts]
    return [node.name for node in tree.body
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")]


def definition(module, name, seen=()):
    """The class or function behind a public name: in the module, or where the module imports it from."""
    tree = tree_of(module)
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name and not is_overload(node):
            return node
    package = module if path_of(module).name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any((a.asname or a.name) == name for a in node.names):
            base = package.split(".")[:len(package.split(".")) - node.level + 1]
            other = ".".join(base + ([node.module] if node.module else []))
            source = next(a.name for a in node.names if (a.asname or a.name) == name)
            if other.startswith("thresher") and (other, source) not in seen and path_of(other).exists():
                return definition(other, source, (*seen, (other, source)))
    # A bound method under the name of a function: `gemm = _functions.gemm`.
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            return bound(node.value)
    return None


def bound(value):
    wanted = value.attr if isinstance(value, ast.Attribute) else None
    for node in ast.walk(tree_of("thresher._array_functions")):
        if isinstance(node, ast.FunctionDef) and node.name == wanted:
            return node
    return None


def is_overload(node):
    return any(isinstance(d, ast.Name) and d.id in ("overload", "_overload") for d in node.decorator_list)


def signature(function, method):
    arguments = ast.parse(f"def f({ast.unparse(function.args)}): ...").body[0].args
    if method and arguments.args and arguments.args[0].arg in ("self", "cls"):
        arguments.args.pop(0)
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return f"({ast.unparse(arguments)}){returns}"


def doc(node):
    return (ast.get_docstring(node) or "").splitlines()


def entry(kind, name, signed, body):
    yield f"```{{py:{kind}}} {name}{signed}"
    yield from body
    yield "```"
    yield ""


class PythonModule(SphinxDirective):
    required_arguments = 1

    def run(self):
        module = self.arguments[0]
        tree = tree_of(module)
        self.env.note_dependency(str(path_of(module)))
        section = nodes.Element()
        self.state.nested_parse(StringList([*fenced_text(doc(tree)), "", *self.entries(module, tree)], module), 0, section)
        return section.children

    def entries(self, module, tree):
        for name in exported(tree):
            node = definition(module, name)
            if isinstance(node, ast.ClassDef):
                yield from self.of_class(module, name, node)
            elif node is not None:
                method = bool(node.args.args) and node.args.args[0].arg == "self"
                yield from entry("function", f"{module}.{name}", signature(node, method), fenced_text(doc(node)))

    def of_class(self, module, name, node):
        methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
        init = next((one for one in methods if one.name == "__init__"), None)
        body = [*fenced_text(doc(node)), "", *fenced_text(doc(init) if init else [])]
        yield f"````{{py:class}} {module}.{name}{signature(init, True) if init else ''}"
        yield from body
        yield ""
        for method in methods:
            if not method.name.startswith("_") and doc(method):
                yield from entry("method", method.name, signature(method, True), fenced_text(doc(method)))
        yield "````"
        yield ""


_ARGUMENT = re.compile(r"([a-z_][a-z0-9_]*(?:(?:, | and )[a-z_][a-z0-9_]*)*): ")


def fenced_text(lines):
    """A docstring as Markdown: `name: text` begins an item of a list, and code in four more columns stays."""
    for line in lines:
        if line.startswith("    "):
            yield line
        else:
            yield _ARGUMENT.sub(r"- `\1`: ", line.replace("[", "\\[").replace("<", "\\<"), count=1) if _ARGUMENT.match(line) else \
                line.replace("[", "\\[").replace("<", "\\<")


def setup(app):
    app.add_directive("python-module", PythonModule)
    return {"parallel_read_safe": True}
