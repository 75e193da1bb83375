"""Numbers are read as `np.float32(float(text))`."""

from decimal import Decimal

import numpy as np

from dualrank.data.letor.reader import read_letor


def read_values(tmp_path, texts):
    path = tmp_path / "numbers.txt"
    path.write_text("".join(f"0 qid:1 1:{text}\n" for text in texts))
    return read_letor(path, cache=False).features[:, 0]


def assert_equal_bits(found, texts):
    expected = np.array([np.float32(float(text)) for text in texts])
    wrong = np.flatnonzero(found.view(np.uint32) != expected.view(np.uint32))
    assert [(texts[i], found[i], expected[i]) for i in wrong[:5]] == []


def test_random_decimal_texts_are_rounded_correctly(tmp_path):
    rng = np.random.default_rng(1)
    texts = []
    for _ in range(30_000):
        digits = "".join(map(str, rng.integers(0, 10, rng.integers(1, 26))))
        point = int(rng.integers(0, len(digits) + 1))
        text = "+-  "[rng.integers(0, 4)].strip() + digits[:point] + "." + digits[point:]
        if rng.random() < 0.5:
            text += f"e{rng.integers(-75, 38 - point)}"
        texts.append(text)
    assert_equal_bits(read_values(tmp_path, texts), texts)


def test_texts_beside_the_middle_of_two_float32_are_rounded_correctly(tmp_path):
    rng = np.random.default_rng(2)
    low = rng.integers(1, 0x7F7FFFFE, 3_000).astype(np.uint32).view(np.float32)
    texts = []
    for a, b in zip(low.tolist(), np.nextafter(low, np.float32(np.inf)).tolist(), strict=True):
        middle = (Decimal(a) + Decimal(b)) / 2
        texts += [str(middle), str(middle.next_plus()), str(middle.next_minus()), f"{middle:.17e}"]
    assert_equal_bits(read_values(tmp_path, texts), texts)


def test_extreme_exponents_are_rounded_correctly(tmp_path):
    texts = [
        "1e-400",
        "-1e-99999999999",
        "0e999999999",
        "123e-310",
        "0." + "0" * 400 + "1",
        "1e-46",
    ]
    texts += ["0." + "0" * 50 + "123e60", "1" + "0" * 400 + "e-400", "3.4028235677973362e38"]
    texts += ["3.402823567797336e38", "7.0064923216240853546186479164495806564013097093825e-46"]
    texts += ["5" * 320 + "e-310", "-0.0", "1e-45", "9007199254740993", "16777217.0000000000000001"]
    assert_equal_bits(read_values(tmp_path, texts), texts)
