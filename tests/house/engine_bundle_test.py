"""What scripts/engine_bundle.py keeps of a library, and what it says of parts that are missing."""
import argparse
import contextlib
import io
import pathlib
import struct
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "scripts"))
import engine_bundle  # noqa: E402


def piece(kind, arch, payload):
    header = struct.pack("<HHIQ12xI32x", kind, 1, 64, len(payload), arch)
    assert len(header) == 64
    return header + payload


def fat_binary(*pieces):
    body = b"".join(pieces)
    return engine_bundle.FAT_BINARY + struct.pack("<HHQ", 1, 16, len(body)) + body


class Code(unittest.TestCase):
    def test_a_binary_with_code_for_hopper_keeps_that_alone(self):
        made = [piece(1, 80, b"p" * 24), piece(2, 80, b"a" * 40), piece(2, 90, b"h" * 48), piece(2, 120, b"b" * 8)]
        data = b"head" + fat_binary(*made) + b"tail"
        kept = engine_bundle.hopper_alone(data)
        self.assertEqual(kept, data.replace(b"p" * 24, bytes(24)).replace(b"a" * 40, bytes(40)).replace(b"b" * 8, bytes(8)))

    def test_a_binary_without_it_keeps_the_newest_text_that_runs_there(self):
        data = fat_binary(piece(1, 75, b"o" * 16), piece(1, 80, b"n" * 16), piece(1, 100, b"x" * 16), piece(2, 80, b"a" * 16))
        left = data
        for payload in (b"o" * 16, b"x" * 16, b"a" * 16):
            left = left.replace(payload, bytes(16))
        self.assertEqual(engine_bundle.hopper_alone(data), left)

    def test_every_binary_is_judged_by_itself(self):
        one, other = fat_binary(piece(2, 90, b"h" * 8)), fat_binary(piece(1, 80, b"n" * 8), piece(2, 86, b"a" * 8))
        self.assertEqual(engine_bundle.hopper_alone(one + other), one + other.replace(b"a" * 8, bytes(8)))

    def test_what_is_no_binary_is_left(self):
        for data in (b"nothing", engine_bundle.FAT_BINARY, engine_bundle.FAT_BINARY + struct.pack("<HHQ", 1, 16, 1 << 40)):
            self.assertEqual(engine_bundle.hopper_alone(data), data)


class Parts(unittest.TestCase):
    def test_large_files_are_packed_in_as_few_parts_as_hold_them(self):
        with tempfile.TemporaryDirectory() as folder:
            site, known = pathlib.Path(folder, "site"), engine_bundle.compressed
            site.mkdir()
            sizes = {"a": 6, "b": 5, "c": 4, "d": 3}
            for name in sizes:
                (site / name).write_text(name)
            engine_bundle.compressed = lambda path: sizes[path.name]
            try:
                engine_bundle.packed(site, pathlib.Path(folder), "vllm", 10)
            finally:
                engine_bundle.compressed = known
            names = [sorted(tarfile.open(one).getnames()) for one in sorted(pathlib.Path(folder).glob("*.tar.xz"))]
            self.assertEqual(names, [["a", "c"], ["b", "d"]])

    def test_parts_come_one_after_the_other(self):
        with tempfile.TemporaryDirectory() as folder:
            carried, site = pathlib.Path(folder, "carried"), pathlib.Path(folder, "site")
            carried.mkdir()
            given = argparse.Namespace(engine="vllm", folder=str(carried), site=str(site))
            made = {}
            for name, text in (("1-of-2", "one"), ("2-of-2", "two"), ("thresher", "own")):
                file = pathlib.Path(folder, name)
                file.write_text(text)
                made[name] = carried / f"vllm.{name}.tar.xz"
                engine_bundle.archive(made[name], pathlib.Path(folder), [file])
            brought = {name: path.read_bytes() for name, path in made.items()}
            for path in made.values():
                path.unlink()
            for name, missing in (("1-of-2", ["vllm.thresher.tar.xz", "vllm.2-of-2.tar.xz"]), ("thresher", ["vllm.2-of-2.tar.xz"]), ("2-of-2", [])):
                made[name].write_bytes(brought[name])
                said = io.StringIO()
                with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
                    engine_bundle.unpack(given)
                self.assertEqual(said.getvalue(), f"still missing: {', '.join(missing)}\n" if missing else "")
                made[name].unlink()  # the next call brings another
            self.assertEqual([(site / name).read_text() for name in brought], ["one", "two", "own"])


if __name__ == "__main__":
    unittest.main()
