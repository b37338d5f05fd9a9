#!/bin/sh
# Builds the packages from source into a folder, in place of an installation: for a GPU machine that cannot reach an index.
#
#     . tools/gpu/setup.sh [folder]        (default: a new temporary one; sets PYTHONPATH)
#
# Needs a Python with numpy, ml_dtypes and setuptools, and a C++ compiler. Wheels that the machine lacks (bytecode,
# scipy-openblas32) may lie in the folder that WHEELS names.
lamina_root=$(cd "$(dirname "${BASH_SOURCE:-$0}")/../.." && pwd)
lamina_build=${1:-$(mktemp -d)}
lamina_python=${PYTHON:-python3}
mkdir -p "$lamina_build"
for name in fx prims tensor dynamo aot inductor testing; do
    cp -r "$lamina_root/packages/lamina-$name/src/." "$lamina_build/"
done
cp -r "$lamina_root/packages/lamina/src/." "$lamina_build/"
find "$lamina_build" -name "*.so" -delete
export PYTHONPATH="$lamina_build${PYTHONPATH:+:$PYTHONPATH}"
if [ -n "$WHEELS" ]; then
    "$lamina_python" -m pip install -q --no-index --no-deps --no-compile --target "$lamina_build" "$WHEELS"/*.whl
fi
for name in tensor dynamo inductor; do
    (cd "$lamina_root/packages/lamina-$name" &&
        "$lamina_python" setup.py -q build_ext --build-lib "$lamina_build" --build-temp "$lamina_build/.objects-$name" --parallel 4) &
done
wait
(cd / && "$lamina_python" -c "import lamina_tensor, lamina_dynamo, lamina_inductor.host._launcher, lamina_inductor.host._cuda, lamina") &&
    echo "lamina is built in $lamina_build"
