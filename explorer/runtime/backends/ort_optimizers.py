"""Names of ONNX Runtime's own graph optimisers, for ``disabled=``.

ONNX Runtime accepts any name and ignores those it does not know, so that a typo would measure another
target than it says. The list is what version 1.32 applies on the CPU: graph transformers as they report
themselves in its verbose log, and the rewrite rules inside its rule-based transformers, each found in the
library itself by ``tests/runtime/test_ort.py``.
"""

from __future__ import annotations

_RULES = """
CastChainElimination CastElimination ClipQuantRewrite ConvAddFusion ConvBNFusion ConvMulFusion DivMulFusion
EliminateDropout EliminateIdentity EliminateSlice ExpandElimination FuseReluClip GemmSumFusion
GemmTransposeFusion LabelEncoderFusion MatMul_BatchNormalization_Fusion NoopElimination NotWhereFusion
Pad_Fusion PreShapeNodeElimination ReluQuantRewrite UnsqueezeElimination
"""
_TRANSFORMERS = """
AttentionFusion BiasDropoutFusion BiasGeluFusion BiasSkipLayerNormFusion BiasSoftmaxFusion
CommonSubexpressionElimination ConstantFolding ConstantSharing ConvActivationFusion ConvAddActivationFusion
DoubleQDQPairsRemover DynamicQuantizeMatMulFusion EmbedLayerNormFusion EnsureUniqueDQForNodeUnit
FastGeluFusion GatherSliceToSplitFusion GatherToSliceFusion GeluApproximation GeluFusionL1 GeluFusionL2
GemmActivationFusion GroupQueryAttentionFusion GroupQueryAttentionPreNormFusion LayerNormFusionL1
LayerNormFusionL2 Level1_RuleBasedTransformer Level2_RuleBasedTransformer MatMulActivationFusion
MatMulAddFusion MatMulIntegerToFloatFusion MatMulNBitsFusion MatMulScaleFusion MatmulTransposeFusion
NchwcTransformer NhwcTransformer QDQFinalCleanupTransformer QDQPropagationTransformer QDQS8ToU8Transformer
QDQSelectorActionTransformer QuickGeluFusion ReshapeFusion SimplifiedLayerNormFusion SkipLayerNormFusion
SliceConcatToSpaceToDepthFusion SwiGluFusion TransposeOptimizer TransposeOptimizer_CPUExecutionProvider
WeightBiasQuantization WhereDummyDq
"""
OPTIMIZERS = tuple(sorted({*_RULES.split(), *_TRANSFORMERS.split()}))
