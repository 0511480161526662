/* An external TFLite delegate for tests: a pretended NPU that computes FULLY_CONNECTED itself, in float32 and int8.
 *
 * It can be told to misbehave:
 *   fail_prepare  "1": refuses when the interpreter prepares its part of the graph
 *   die_after     N: the call after N calls fails, and every later one (a call is one part of a graph run once)
 *   dynamic       "1": takes graphs whose tensors change their size; without it they are refused, as by most NPUs
 * Any other option is refused. It links nothing of TFLite and works with every runtime that has these C structures.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/lite/builtin_ops.h"
#include "tensorflow/lite/core/c/common.h"

#define EXPORT __attribute__((visibility("default")))

/* builtin_op_data.h is not among the headers that Maven serves; this is how its structures begin. */
typedef enum { kNone = 0, kRelu, kReluN1To1, kRelu6 } Activation;
typedef struct {
  Activation activation;
  int weights_format;
  bool keep_dimensions;
} FullyConnectedParams;

typedef struct {
  TfLiteDelegate delegate;
  int fail_prepare;
  long die_after; /* below 0: never */
  long calls;
} Npu;

typedef struct {
  int input, weights, bias, output; /* tensor numbers; bias below 0: none */
  Activation activation;
  bool keep_dimensions;
} Layer;

typedef struct {
  Npu* npu;
  int layer_count;
  Layer layers[];
} Part;

static int is_ours(TfLiteContext* context, const TfLiteNode* node, const TfLiteRegistration* registration) {
  if (registration->builtin_code != kTfLiteBuiltinFullyConnected) return 0;
  if (((const FullyConnectedParams*)node->builtin_data)->activation > kRelu6) return 0;
  const TfLiteTensor* input = &context->tensors[node->inputs->data[0]];
  const TfLiteTensor* weights = &context->tensors[node->inputs->data[1]];
  if (weights->allocation_type != kTfLiteMmapRo || input->type != weights->type) return 0;
  return input->type == kTfLiteFloat32 || input->type == kTfLiteInt8;
}

static double activate(double value, Activation activation) {
  if (activation == kNone) return value;
  if (value < 0) return 0;
  if (activation == kReluN1To1 && value > 1) return 1;
  return activation == kRelu6 && value > 6 ? 6 : value;
}

static void run_float(const Layer* layer, TfLiteTensor* tensors, int rows, int inputs, int outputs) {
  const float* bias = layer->bias < 0 ? NULL : tensors[layer->bias].data.f;
  for (int row = 0; row < rows; row++) {
    const float* input = tensors[layer->input].data.f + row * inputs;
    for (int output = 0; output < outputs; output++) {
      const float* weights = tensors[layer->weights].data.f + output * inputs;
      float sum = bias ? bias[output] : 0;
      for (int i = 0; i < inputs; i++) sum += input[i] * weights[i];
      tensors[layer->output].data.f[row * outputs + output] = (float)activate(sum, layer->activation);
    }
  }
}

static void run_int8(const Layer* layer, TfLiteTensor* tensors, int rows, int inputs, int outputs) {
  const TfLiteTensor* x = &tensors[layer->input];
  const TfLiteTensor* y = &tensors[layer->output];
  const TfLiteFloatArray* scales = ((TfLiteAffineQuantization*)tensors[layer->weights].quantization.params)->scale;
  const int32_t* bias = layer->bias < 0 ? NULL : tensors[layer->bias].data.i32;
  for (int row = 0; row < rows; row++) {
    const int8_t* input = x->data.int8 + row * inputs;
    for (int output = 0; output < outputs; output++) {
      const int8_t* weights = tensors[layer->weights].data.int8 + output * inputs;
      int32_t sum = bias ? bias[output] : 0;
      for (int i = 0; i < inputs; i++) sum += (input[i] - x->params.zero_point) * weights[i];
      double scale = scales->data[scales->size > 1 ? output : 0] * (double)x->params.scale;
      long value = lrint(activate(sum * scale, layer->activation) / y->params.scale) + y->params.zero_point;
      y->data.int8[row * outputs + output] = (int8_t)(value < -128 ? -128 : value > 127 ? 127 : value);
    }
  }
}

static void* part_init(TfLiteContext* context, const char* buffer, size_t length) {
  (void)length;
  const TfLiteDelegateParams* params = (const TfLiteDelegateParams*)buffer;
  const TfLiteIntArray* numbers = params->nodes_to_replace;
  Part* part = calloc(1, sizeof(Part) + numbers->size * sizeof(Layer));
  part->npu = params->delegate->data_;
  for (int i = 0; i < numbers->size; i++) {
    TfLiteNode* node;
    TfLiteRegistration* registration;
    if (context->GetNodeAndRegistration(context, numbers->data[i], &node, &registration) != kTfLiteOk) break;
    Layer* layer = &part->layers[part->layer_count++];
    layer->input = node->inputs->data[0];
    layer->weights = node->inputs->data[1];
    layer->bias = node->inputs->size > 2 ? node->inputs->data[2] : -1;
    layer->output = node->outputs->data[0];
    layer->activation = ((FullyConnectedParams*)node->builtin_data)->activation;
    layer->keep_dimensions = ((FullyConnectedParams*)node->builtin_data)->keep_dimensions;
  }
  return part;
}

static void part_free(TfLiteContext* context, void* part) {
  (void)context;
  free(part);
}

static int row_count(const TfLiteTensor* input, const TfLiteTensor* weights) {
  int rows = 1;
  for (int k = 0; k < input->dims->size; k++) rows *= input->dims->data[k];
  return rows / weights->dims->data[1];
}

static TfLiteStatus resize_output(TfLiteContext* context, const Layer* layer) {
  const TfLiteTensor* input = &context->tensors[layer->input];
  const TfLiteTensor* weights = &context->tensors[layer->weights];
  int size = layer->keep_dimensions ? input->dims->size : 2;
  TfLiteIntArray* shape = malloc(sizeof(TfLiteIntArray) + size * sizeof(int));
  shape->size = size;
  if (layer->keep_dimensions) {
    memcpy(shape->data, input->dims->data, size * sizeof(int));
  } else {
    shape->data[0] = row_count(input, weights);
  }
  shape->data[size - 1] = weights->dims->data[0];
  return context->ResizeTensor(context, &context->tensors[layer->output], shape);
}

static TfLiteStatus part_prepare(TfLiteContext* context, TfLiteNode* node) {
  Part* part = node->user_data;
  if (part->npu->fail_prepare) {
    context->ReportError(context, "test delegate: told to fail at prepare");
    return kTfLiteError;
  }
  for (int i = 0; i < part->layer_count; i++) {
    if (resize_output(context, &part->layers[i]) != kTfLiteOk) return kTfLiteError;
  }
  return kTfLiteOk;
}

static TfLiteStatus part_invoke(TfLiteContext* context, TfLiteNode* node) {
  Part* part = node->user_data;
  Npu* npu = part->npu;
  if (npu->die_after >= 0 && npu->calls >= npu->die_after) {
    context->ReportError(context, "test delegate: told to die after %d calls", (int)npu->die_after);
    return kTfLiteError;
  }
  npu->calls++;
  for (int i = 0; i < part->layer_count; i++) {
    const Layer* layer = &part->layers[i];
    const TfLiteTensor* input = &context->tensors[layer->input];
    const TfLiteTensor* weights = &context->tensors[layer->weights];
    const TfLiteIntArray* shape = weights->dims;
    int rows = row_count(input, weights);
    (input->type == kTfLiteFloat32 ? run_float : run_int8)(layer, context->tensors, rows, shape->data[1], shape->data[0]);
  }
  return kTfLiteOk;
}

static TfLiteStatus npu_prepare(TfLiteContext* context, TfLiteDelegate* delegate) {
  TfLiteIntArray* plan;
  if (context->GetExecutionPlan(context, &plan) != kTfLiteOk) return kTfLiteError;
  TfLiteIntArray* ours = malloc(sizeof(TfLiteIntArray) + plan->size * sizeof(int));
  ours->size = 0;
  for (int i = 0; i < plan->size; i++) {
    TfLiteNode* node;
    TfLiteRegistration* registration;
    if (context->GetNodeAndRegistration(context, plan->data[i], &node, &registration) != kTfLiteOk) {
      free(ours);
      return kTfLiteError;
    }
    if (is_ours(context, node, registration)) ours->data[ours->size++] = plan->data[i];
  }
  TfLiteRegistration kernel = {.init = part_init,
                               .free = part_free,
                               .prepare = part_prepare,
                               .invoke = part_invoke,
                               .custom_name = "TestNpu",
                               .version = 1};
  TfLiteStatus status = context->ReplaceNodeSubsetsWithDelegateKernels(context, kernel, ours, delegate);
  free(ours);
  return status;
}

/* Python's runtimes hand the count over as an int. */
EXPORT TfLiteDelegate* tflite_plugin_create_delegate(char** keys, char** values, int count,
                                                     void (*report_error)(const char*)) {
  Npu* npu = calloc(1, sizeof(Npu));
  npu->die_after = -1;
  for (int i = 0; i < count; i++) {
    if (strcmp(keys[i], "fail_prepare") == 0) {
      npu->fail_prepare = strcmp(values[i], "1") == 0;
    } else if (strcmp(keys[i], "dynamic") == 0) {
      npu->delegate.flags = strcmp(values[i], "1") == 0 ? kTfLiteDelegateFlagsAllowDynamicTensors : 0;
    } else if (strcmp(keys[i], "die_after") == 0) {
      npu->die_after = atol(values[i]);
    } else {
      if (report_error) report_error("test delegate: unknown option");
      free(npu);
      return NULL;
    }
  }
  npu->delegate.data_ = npu;
  npu->delegate.Prepare = npu_prepare;
  return &npu->delegate;
}

EXPORT void tflite_plugin_destroy_delegate(TfLiteDelegate* delegate) {
  if (delegate) free(delegate->data_);
}
