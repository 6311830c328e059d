# SPDX-License-Identifier: Apache-2.0
# Functions that install missing Debian packages, PyTorch and ONNX. tools/test and tools/quickstart source this file.

packages_build=(g++ meson ninja-build pkg-config python3 libfmt-dev libcli11-dev nlohmann-json3-dev libssl-dev libxxhash-dev
  zlib1g-dev libdnnl-dev libhwy-dev libvulkan-dev glslc ocl-icd-opencl-dev libze-dev clang-15 llvm-spirv-15 spirv-tools)
packages_test=(git cmake python3-venv libgtest-dev libgmock-dev python3-jsonschema python3-numpy python3-pip python3-setuptools
  python3-wheel clang-16 clang-tidy-16 clang-format-16 libclang-rt-16-dev llvm-16
  mesa-vulkan-drivers vulkan-validationlayers pocl-opencl-icd intel-opencl-icd libze1 hipcc libamdhip64-dev)

# Installs the packages NAME... if they are missing. Needs no privileges if all are installed.
install_packages() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
      echo "these packages are missing: ${missing[*]}. Install them, or run this as root." >&2
      return 1
    }
    root=(sudo)
  fi
  echo "installing: ${missing[*]}"
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq </dev/null
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" \
    </dev/null >/dev/null
}

packages_pytorch=(torch==2.13.0 expecttest==0.3.0 numpy setuptools wheel ninja)

# have_pytorch: installs PyTorch with pip in a separate environment, unless an earlier run has
# installed the same packages. The bridge in samples/pytorch is built and tested with this environment.
have_pytorch() {
  [ "$(cat build/pytorch-prefix/complete 2>/dev/null)" = "${packages_pytorch[*]}" ] || {
    python3 -m venv build/pytorch-prefix && build/pytorch-prefix/bin/pip install --quiet "${packages_pytorch[@]}" &&
      echo "${packages_pytorch[*]}" >build/pytorch-prefix/complete
  } >build/pytorch-prefix.log 2>&1
}

# have_onnx: installs ONNX and ONNX Runtime with pip in a separate environment, unless an earlier
# run has installed them. The package in samples/onnx is tested with this environment.
have_onnx() {
  [ -f build/onnx-prefix/complete ] || {
    python3 -m venv build/onnx-prefix &&
      build/onnx-prefix/bin/pip install --quiet onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6 ml_dtypes==0.6.0 && touch build/onnx-prefix/complete
  } >build/onnx-prefix.log 2>&1
}
