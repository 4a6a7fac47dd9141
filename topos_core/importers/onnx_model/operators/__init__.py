"""ONNX operators as formulas, one file a family; the folder is walked."""
