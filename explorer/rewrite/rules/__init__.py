"""The rule library, one module per subject; each lists its rules in ``RULES``."""

from explorer.rewrite.rule import Rule
from explorer.rewrite.rules import (
    arithmetic,
    batchnorm,
    channel_scale,
    elimination,
    fused_conv,
    gemm,
    group_conv,
    hardswish,
    parallel_conv,
    parallel_matmul,
)

RULES: tuple[Rule, ...] = (
    *elimination.RULES,
    *batchnorm.RULES,
    *channel_scale.RULES,
    *fused_conv.RULES,
    *parallel_conv.RULES,
    *group_conv.RULES,
    *gemm.RULES,
    *parallel_matmul.RULES,
    *arithmetic.RULES,
    *hardswish.RULES,
)
