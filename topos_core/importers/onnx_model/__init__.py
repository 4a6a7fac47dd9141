"""ONNX models become tapes: every operator through a formula or plain ops, everything else opaque under its own name."""
