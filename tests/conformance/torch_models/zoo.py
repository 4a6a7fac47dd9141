"""Every measured model: how it is built and what it is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.conformance.torch_models import language, sequences, vision

IMAGE = ("f32[1,3,224,224]",)
SMALL_IMAGE = ("f32[1,3,64,64]",)
TOKENS = {"input_ids": "i64[1,128]<100"}


@dataclass(frozen=True, slots=True)
class Model:
    """One model.

    Args:
        name: As the table calls it.
        build: A factory.
        specs: Input specs by position, or by name.
        small: Whether its results are compared with torch's.
    """

    name: str
    build: Callable[[], Any]
    specs: tuple[str, ...] | dict[str, str]
    small: bool = False


def hf(name: str, attention: str = "sdpa", **options: Any) -> Callable[[], Any]:
    return lambda: language.make(name, attention, **options)


def carrying(build: Callable[[], Any]) -> Callable[[], Any]:
    """Gives a deep network weights that carry its input to the end: with torch's own, only the last bias is left of it."""

    def made() -> Any:
        from torch import nn

        module = build()
        for each in module.modules():
            if isinstance(each, nn.Conv2d):
                nn.init.kaiming_normal_(each.weight)
            elif isinstance(each, nn.BatchNorm2d):
                nn.init.uniform_(each.weight, 0.8, 1.2)
                nn.init.normal_(each.bias, std=0.2)
        return module

    return made


def models() -> list[Model]:
    """Lists vision models, sequence models, and those of transformers."""
    small, decoder = language.SMALL, language.DECODER
    vision_small = {
        "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "image_size": 32, "patch_size": 8,
    }  # fmt: skip
    ids = {"input_ids": "i64[2,16]<100"}
    masked = {**ids, "attention_mask": "i64[2,16]<2"}
    found = [
        Model("ResNet-18", vision.resnet18, IMAGE),
        Model("ResNet-50", vision.resnet50, IMAGE),
        Model("ResNet, small", vision.resnet_small, ("f32[2,3,32,32]",), True),
        Model("MobileNetV2", vision.MobileNetV2, IMAGE),
        Model("MobileNetV3-small", vision.MobileNetV3, IMAGE),
        Model("EfficientNet-B0", vision.EfficientNetB0, IMAGE),
        Model("ConvNeXt-T", vision.ConvNeXt, IMAGE),
        Model("DenseNet-121", vision.DenseNet, IMAGE),
        Model("MobileNetV2, 64x64", carrying(vision.MobileNetV2), SMALL_IMAGE, True),
        Model("MobileNetV3-small, 64x64", carrying(vision.MobileNetV3), SMALL_IMAGE, True),
        Model("EfficientNet-B0, 64x64", carrying(vision.EfficientNetB0), SMALL_IMAGE, True),
        Model("ConvNeXt-T, 64x64", vision.ConvNeXt, SMALL_IMAGE, True),
        Model("DenseNet-121, 64x64", vision.DenseNet, SMALL_IMAGE, True),
        Model("U-Net", vision.UNet, ("f32[1,3,256,256]",)),
        Model("U-Net, small", lambda: vision.UNet(8, 2), ("f32[1,3,32,32]",), True),
        Model("ViT-B/16", vision.ViT, IMAGE),
        Model("ViT, small", lambda: vision.ViT(32, 2, 4, 32, 8, 10), ("f32[2,3,32,32]",), True),
        Model("Swin-T", vision.Swin, IMAGE),
        Model("Swin, small", lambda: vision.Swin(16, (2, 2), (2, 4), 32, 4, 10), ("f32[1,3,32,32]",), True),
        Model("DCGAN generator", vision.Generator, ("f32[1,100,1,1]",), True),
        Model("3-D CNN", lambda: vision.Video(8), ("f32[1,3,8,16,16]",), True),
        Model("WaveNet", lambda: sequences.WaveNet(16, 4), ("f32[1,1,64]",), True),
        Model("LSTM tagger", lambda: sequences.Tagger("LSTM"), ("i64[2,12]<100",), True),
        Model("GRU tagger", lambda: sequences.Tagger("GRU"), ("i64[2,12]<100",), True),
        Model("LSTMCell loop", sequences.CellLoop, ("f32[2,6,16]",), True),
        Model("nn.TransformerEncoder", sequences.encoder, ("f32[2,32,256]",), True),
        Model("nn.TransformerDecoder", sequences.Decoder, ("f32[2,32,256]", "f32[2,20,256]"), True),
    ]
    for attention in ("sdpa", "eager"):
        rows: list[tuple[str, Callable[[], Any], Any]] = [
            ("BERT", hf("Bert", attention, **small), masked),
            ("RoBERTa", hf("Roberta", attention, **small, pad_token_id=1, max_position_embeddings=64), ids),
            ("DistilBERT", hf("DistilBert", attention, dim=64, n_layers=2, n_heads=4, hidden_dim=128, vocab_size=100), masked),
            ("GPT-2", hf("GPT2", attention, n_embd=64, n_layer=2, n_head=4, vocab_size=100, use_cache=False), ids),
            ("T5", hf("T5", attention, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, vocab_size=100, use_cache=False),
             {**ids, "decoder_input_ids": "i64[2,8]<100"}),
            ("Llama", hf("Llama", attention, **decoder), ids),
            ("Mistral", hf("Mistral", attention, **decoder), ids),
            ("Mixtral", hf("Mixtral", attention, **decoder, num_local_experts=4), ids),
            ("Qwen2", hf("Qwen2", attention, **decoder), ids),
            ("Gemma", hf("Gemma", attention, **decoder, head_dim=16), ids),
            ("Whisper", hf("Whisper", attention, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                           decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, vocab_size=100, num_mel_bins=16,
                           max_source_positions=32, max_target_positions=32, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                           decoder_start_token_id=1, use_cache=False),
             {"input_features": "f32[1,16,64]", "decoder_input_ids": "i64[1,8]<100"}),
            ("CLIP vision", hf("CLIPVision", attention, **vision_small), {"pixel_values": "f32[1,3,32,32]"}),
            ("ViT (transformers)", hf("ViT", attention, **vision_small), {"pixel_values": "f32[1,3,32,32]"}),
            ("DINOv2", hf("Dinov2", attention, **{**vision_small, "patch_size": 8}), {"pixel_values": "f32[1,3,32,32]"}),
            ("SAM encoder", hf("SamVision", attention, hidden_size=64, output_channels=32, num_hidden_layers=2, num_attention_heads=4,
                               image_size=64, patch_size=8, window_size=4, global_attn_indexes=[1], mlp_dim=128), {"pixel_values": "f32[1,3,64,64]"}),
            ("wav2vec2", hf("Wav2Vec2", attention, **small, conv_dim=(32, 32), conv_stride=(5, 2), conv_kernel=(10, 3),
                            num_feat_extract_layers=2, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4), {"input_values": "f32[1,2000]"}),
        ]  # fmt: skip
        found += [Model(f"{name}, {attention}", build, specs, True) for name, build, specs in rows]
    found += [
        Model("BERT-base", language.bert_base, {"input_ids": "i64[1,128]<30522"}),
        Model("GPT-2 124M", hf("GPT2", use_cache=False), {"input_ids": "i64[1,128]<50257"}),
        Model("Llama 7B", language.llama_7b, {"input_ids": "i64[1,128]<32000"}),
    ]
    return found
