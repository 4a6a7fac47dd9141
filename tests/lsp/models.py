"""Small marked programs."""

HEADER = "import numpy as np\nimport topos_core as tp\n\n\n"

NORM = (
    HEADER
    + """@tp.model(x=tp.f32[8, 4, 6, 6], scale=tp.f32[4], shift=tp.f32[4])
def norm(x, scale, shift):
    mean = x.mean(axis=(0, 2, 3), keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=(0, 2, 3), keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * scale.reshape(1, 4, 1, 1) + shift.reshape(1, 4, 1, 1)
"""
)

# Every character that editors and Python count differently stands before an expression.
WIDE = (
    HEADER
    + """PAGE = "\x0c"
LINES = "a\u2028b"


@tp.model(x=tp.f32[64, 32, 28, 28])
def wide(x):
    mean = x.mean(axis=(0, 2, 3), keepdims=True)
    "é 漢 😀 e\u0301"; größe = x - mean
    "😀😀"; tp.observe(größe, "😀")
    variance = (größe * größe).mean(axis=(0, 2, 3), keepdims=True)
    return größe / np.sqrt(variance + 1e-5)
"""
)


def marked(body, arguments="x=tp.f32[4, 4]", name="main"):
    """Marks a function of some statements."""
    parameters = ", ".join(each.partition("=")[0].strip() for each in arguments.split(", ") if "=" in each)
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{HEADER}@tp.model({arguments})\ndef {name}({parameters}):\n{lines}"
