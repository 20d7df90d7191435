"""Well-known models as JAX programs, from shapes only.

The corpus is made from them, and they are examples to capture and tune.

    from workloads import WORKLOADS
    function, args = WORKLOADS["wavernn_64steps_b8"]()
    jax.jit(function).lower(*args)

No weight is ever made: parameters are shapes. Inference runs in bf16; a training step keeps its
state in f32.
Names that end in 4 after tp, dp, fsdp or ep are for four devices (sharded.py).
kernels.py has models with Pallas kernels, and whole.py those of the suite `large`, of thousands of
accesses each.
"""

from functools import partial

from . import games, kernels, language, large, science, sharded, vision, whole

# Name -> function without arguments that gives (function, shapes of its arguments).
WORKLOADS = {
    "alexnet": partial(vision.alexnet_training, 64),
    "alphatensor_b4": partial(games.alphatensor, 4),
    "alphazero_chess_train_b64": partial(games.alphazero_chess_training, 64),
    "alphazero_go_b16": partial(games.alphazero_go, 16),
    "bert_base_b1_s128": partial(language.bert, 1, 128),
    "bert_base_b8_s384": partial(language.bert, 8, 384),
    "clip_vit_b32_b4": partial(language.clip_vit_b32, 4),
    "convnext_tiny_b8": partial(vision.convnext_tiny, 8),
    "dcgan_generator_b32": partial(vision.dcgan_generator, 32),
    "densenet121_b4": partial(vision.densenet121, 4),
    "diffusion_unet_b2_64": partial(large.diffusion_unet, 2, 64),
    "efficientnet_b0_b8": partial(vision.efficientnet_b0, 8),
    "gcn_dense_2048": partial(science.graph_convolution, 2048),
    "gnn_meshgraph_4k": partial(science.mesh_graph_network, 4096, 16384),
    "gpt2_train_adamw_b8_s1024": partial(large.gpt2_training, 8, 1024),
    "gpt2_train_adamw_b8_s1024_scan": partial(large.gpt2_training, 8, 1024, scan=True),
    "llama_1b_decode_8l_b4_kv1024": partial(language.llama_decode, 4, 8, 1024),
    "llama_1b_decode_8l_b8_kv1024_tp4": partial(sharded.llama_tensor_parallel, 8, 8, 1024),
    "llama_1b_prefill_4l_s512": partial(language.llama_prefill, 1, 4, 512),
    "llama_3b_flash_prefill_2l_s1024": partial(kernels.flash_prefill, 1, 2, 1024),
    "llama_3b_paged_decode_4l_b16_kv1024": partial(kernels.paged_decode, 16, 4, 1024),
    "llama_3b_splash_prefill_2l_s1024": partial(kernels.splash_prefill, 1, 2, 1024, 512),
    "llama_8b_decode_32l_b8_kv2048": partial(large.llama_8b_decode, 8, 32, 2048),
    "llama_8b_decode_32l_b8_kv2048_scan": partial(large.llama_8b_decode, 8, 32, 2048, scan=True),
    "lstm_lm_train_b32_t16": partial(science.lstm_language_training, 32, 16),
    "mlp_kernel_6l_b512": partial(kernels.mlp_kernel, 512, 6),
    "mlp_mixer_b16": partial(vision.mlp_mixer, 16),
    "mlp_train_adam_b512": partial(science.mlp_training, 512),
    "mlp_train_adam_b2048_dp4": partial(sharded.mlp_data_parallel, 2048),
    "mlp_train_adam_b2048_fsdp4": partial(sharded.mlp_fully_sharded, 2048),
    "mobilenet_v2_b8": partial(vision.mobilenet_v2, 8),
    "moe_transformer_2l_b4_s128": partial(language.mixture_of_experts, 4, 2, 128),
    "moe_transformer_2l_b16_s128_ep4": partial(sharded.experts_all_to_all, 16, 2, 128),
    "moe_transformer_8l_b4_s512": partial(language.mixture_of_experts, 4, 8, 512),
    "muzero_unroll_b32": partial(games.muzero_unroll, 32),
    "nerf_mlp_64k": partial(science.nerf, 65536),
    "pointnet_b8_2048": partial(science.pointnet, 8, 2048),
    "resnet101_b1": partial(vision.resnet101, 1),
    "resnet101_b4": partial(vision.resnet101, 4),
    "resnet50_b1": partial(vision.resnet50, 1),
    "resnet50_b64": partial(vision.resnet50, 64),
    "resnet50_train_b8": partial(vision.resnet50_training, 8),
    "t5_small_b4_s128": partial(language.t5_small, 4, 128, 64),
    "tensornet_tt_b256": partial(science.tensor_train, 256),
    "tensornet_tt_b32": partial(science.tensor_train, 32),
    "transformer_train_4l_b8_s256": partial(language.transformer_training, 8, 4, 256),
    "vit_base_b8": partial(vision.vit_base, 8),
    "wavernn_64steps_b8": partial(science.wavernn, 8, 64),
    "wdl_ranker_b4096": partial(science.wide_and_deep, 4096),
    "whisper_tiny_b1": partial(language.whisper_tiny, 1),
    **{model: make for model, (_, make) in whole.MODELS.items()},
}
