#include "common/operator.h"

#include <algorithm>

namespace ladder {

double Operator::bytes(const Shape& shape, const Variant& variant) const {
  double total = 0;
  const std::vector<Tensor> all = tensors(shape);
  for (size_t i = 0; i < all.size(); ++i) {
    if (variant.places[i].absent) continue;
    if (all[i].role == Role::input || all[i].role == Role::output) total += all[i].bytes();
  }
  return total;
}

Variant Operator::plain() const {
  Variant variant;
  variant.places.resize(tensors({}).size());
  for (const Scalar& scalar : scalars()) variant.scalars.push_back(scalar.value);
  return variant;
}

Variant Operator::off_by(std::initializer_list<int> elements) const {
  Variant variant = plain();
  auto place = variant.places.begin();
  for (const int offset : elements) (place++)->offset = offset;
  return variant;
}

int most_devices(const Operator& op, const Shape& shape) {
  int most = op.devices(shape);
  if (most > 1)
    for (const Shape& edge : op.edge_cases(true)) most = std::max(most, op.devices(edge));
  return most;
}

std::string shape_text(const Operator& op, const Shape& shape) {
  const std::vector<Parameter> parameters = op.parameters();
  std::string result = parameters.size() == 1 ? std::string(parameters[0].name) + " = " : "";
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].choices.empty())
      result += (i > 0 ? " x " : "") + parameters[i].text_of(shape[static_cast<int>(i)]);
  return result;
}

}  // namespace ladder
