"""What scripts/engine_bundle.py keeps of a library, and what it says of parts that are missing."""
import argparse
import contextlib
import io
import pathlib
import random
import shutil
import struct
import sys
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
    def test_parts_come_in_any_order_in_several_calls(self):
        with tempfile.TemporaryDirectory() as folder:
            source, made, carried, site = (pathlib.Path(folder, name) for name in ("source", "made", "carried", "site"))
            for one in (source / "package", made, carried):
                one.mkdir(parents=True)
            whole = random.Random(20261129).randbytes(2500)
            (source / "package" / "library.so").write_bytes(whole)
            engine_bundle.packed(source, made / "vllm", 1000)
            (source / "package" / "library.so").write_bytes(b"own")
            engine_bundle.packed(source, made / "vllm-thresher", 1000)
            names = sorted(one.name for one in made.iterdir())
            self.assertEqual(names, ["vllm-thresher.1-of-1", "vllm.1-of-3", "vllm.2-of-3", "vllm.3-of-3"])
            given = argparse.Namespace(engine="vllm", folder=str(carried), site=str(site))
            for name, missing in (("vllm.2-of-3", ["vllm.1-of-3", "vllm.3-of-3", "the parts of vllm-thresher"]),
                                  ("vllm-thresher.1-of-1", ["vllm.1-of-3", "vllm.3-of-3"]), ("vllm.3-of-3", ["vllm.1-of-3"]), ("vllm.1-of-3", [])):
                shutil.copy(made / name, carried)
                said = io.StringIO()
                with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
                    engine_bundle.unpack(given)
                self.assertEqual(said.getvalue(), f"still missing: {', '.join(missing)}\n" if missing else "")
                (carried / name).unlink()  # the next call brings another
            self.assertEqual((site / "package" / "library.so").read_bytes(), whole)
            shutil.copy(made / "vllm-thresher.1-of-1", carried)
            engine_bundle.unpack(given)
            self.assertEqual((site / "package" / "library.so").read_bytes(), whole)  # what was unpacked already is not unpacked again
            (source / "package" / "library.so").write_bytes(b"newer")
            engine_bundle.packed(source, carried / "vllm-thresher", 1000)
            engine_bundle.unpack(given)
            self.assertEqual((site / "package" / "library.so").read_bytes(), b"newer")


if __name__ == "__main__":
    unittest.main()
