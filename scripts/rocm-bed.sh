#!/usr/bin/env bash
# Runs a command on AMD's real user-space (HIP, ROCr, comgr, from Debian's archive) over an imitated kernel driver
# (tests/rocm/kfd), on a machine with no AMD GPU. docs/amd-tests.md says what that proves.
#   scripts/rocm-bed.sh [--gpu gfx942] [--gpus 1] [--build DIR] -- COMMAND...   run COMMAND there (--gpus 0: no driver)
#   scripts/rocm-bed.sh --compile SOURCE.hip PROGRAM [CLANG OPTION...]          compile a HIP program for it
#   scripts/rocm-bed.sh --prepare                                               only fetch; print the root's path
# Each also takes, first, --rocm 7.2 (from Debian experimental, the default) or --rocm 6.4 (from Debian forky).
# The packages are fetched once into $TACHO_TEST_CACHE/rocm (default /var/cache/tacho-tests/rocm), a folder a version;
# `versions` there lists them. Exit code 77: this machine cannot make the bed, and a line on stderr says why.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
cache=${TACHO_TEST_CACHE:-/var/cache/tacho-tests}/rocm
python=python3
[ ! -x /usr/bin/python3 ] || python=/usr/bin/python3  # a version manager's takes longer to start than the rest
gpu=gfx942 gpus=1 build=$here/build mode=run rocm=${TACHO_BED_ROCM:-7.2}

cannot() { echo "rocm-bed.sh: $1" >&2; exit 77; }
wrong() { echo "rocm-bed.sh: $1" >&2; exit 2; }

while [ $# -gt 0 ]; do
  case "$1" in
    --rocm) rocm=${2:?--rocm needs a version}; shift 2 ;;
    --gpu) gpu=${2:?--gpu needs an architecture}; shift 2 ;;
    --gpus) gpus=${2:?--gpus needs a number}; shift 2 ;;
    --build) build=$(cd "${2:?--build needs a folder}" && pwd); shift 2 ;;
    --prepare) mode=prepare; shift ;;
    --compile) mode=compile; shift; break ;;
    --) shift; break ;;
    *) wrong "unknown option '$1'; the file's first lines list the options" ;;
  esac
done

# Of each version: where it comes from, its packages, and the versions that it was tried with; newer ones of the archive run
# with a warning.
packages=(libamdhip64-dev libhsa-runtime-dev rocminfo rocm-opencl-icd ocl-icd-libopencl1 bash coreutils libstdc++6 dash
  libstdc++-16-dev libc6-dev)
declare -A known
case "$rocm" in
  7.2)
    suites=(sid experimental) release=experimental llvm=22
    packages+=(libamdhip64-7 libamd-smi27 librocm-smi64-7 librocprofiler-register-0 libhsa-amd-aqlprofile64-1)
    known=([libamdhip64-7]=7.2.4-1~exp2 [libhsa-runtime64-1]=7.2.4+dfsg-1~exp1 [libamd-comgr3]=7.2.4+dfsg-1~exp1
      [rocm-opencl-icd]=7.2.4-1~exp2 [libamd-smi27]=10.1-1)
    ;;
  6.4)
    suites=(forky) release=forky llvm=21
    packages+=(libamdhip64-6 librocm-smi64-1)
    known=([libamdhip64-6]=6.4.3-5 [libhsa-runtime64-1]=6.4.3+dfsg-5 [libamd-comgr3]=7.0.2+dfsg-3
      [rocm-opencl-icd]=6.4.3-5)
    ;;
  *) wrong "no ROCm $rocm on the bed; there are 7.2 and 6.4" ;;
esac
packages+=(clang-$llvm clang-tools-$llvm llvm-$llvm lld-$llvm rocm-device-libs-$llvm)
mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] || cannot "$cache cannot be written: set TACHO_TEST_CACHE"
place=$cache/$rocm-$(echo "${suites[*]} ${packages[*]}" | cksum | cut -d' ' -f1)

fetch() {
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
    cannot "apt-get and dpkg-deb fetch AMD's packages, and they are not here"
  local keys=/usr/share/keyrings/debian-archive-keyring.gpg
  [ -r $keys ] || cannot "$keys is missing (package debian-archive-keyring)"
  local new
  new=$(mktemp -d "$cache/new.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  mkdir -p "$new"/{state/lists/partial,cache/archives/partial,root}
  : >"$new/status"
  local suite
  for suite in "${suites[@]}"; do
    echo "deb [signed-by=$keys] ${TACHO_DEBIAN_MIRROR:-http://deb.debian.org/debian} $suite main"
  done >"$new/sources"
  local apt=(apt-get -qq -y -oDir::State="$new/state" -oDir::State::status="$new/status" -oDir::Cache="$new/cache"
    -oDir::Etc::SourceList="$new/sources" -oDir::Etc::SourceParts=/dev/null -oDir::Etc::Preferences=/dev/null
    -oDir::Etc::PreferencesParts=/dev/null -oAPT::Sandbox::User=root -oAPT::Install-Recommends=0)
  echo "rocm-bed.sh: fetching AMD's packages of ROCm $rocm from Debian $release into $place, once" >&2
  "${apt[@]}" update >"$new/log" 2>&1 || cannot "Debian's archive cannot be reached: $(tail -1 "$new/log")"
  "${apt[@]}" --download-only -t "$release" install "${packages[@]}" >"$new/log" 2>&1 ||
    cannot "Debian's archive does not give the packages any more: $(tail -1 "$new/log")"
  # A merged /usr, as every package expects.
  local folder
  for folder in bin sbin lib lib64; do mkdir -p "$new/root/usr/$folder"; ln -s "usr/$folder" "$new/root/$folder"; done
  mkdir -p "$new/root"/{etc,proc,sys,dev,tmp,var}
  local file
  for file in "$new"/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$file" | tar -x -C "$new/root" --keep-directory-symlink --no-same-owner
    dpkg-deb -W --showformat='${Package} ${Version}\n' "$file"
  done >"$new/versions"
  rm -rf "$new/cache" "$new/state"
  mkdir -p "$place"
  mv -T "$new/root" "$place/root" 2>/dev/null || [ -d "$place/root" ]  # of a fetch that was ended before the next line
  mv "$new/versions" "$place/versions"
  local package version
  while read -r package version; do
    [ -z "${known[$package]:-}" ] || [ "${known[$package]}" = "$version" ] ||
      echo "rocm-bed.sh: $package is $version; the bed was last tried with ${known[$package]}" >&2
  done <"$place/versions"
  rm -rf "$new"
  trap - EXIT
}

[ "$(uname -m)" = x86_64 ] || cannot "AMD's user-space is there for x86-64 only"
if [ ! -e "$place/versions" ]; then
  # One fetches, others that start meanwhile wait for it.
  exec {lock}>"$cache/lock"
  flock "$lock"
  [ -e "$place/versions" ] || fetch
  exec {lock}>&-
fi
root=$place/root
if [ "$mode" = prepare ]; then
  echo "$root"
  exit 0
fi

# tests/rocm/enter.py runs inside the mount namespace.
enter() {  # topology preload command...
  exec "$python" -I -S "$here/tests/rocm/enter.py" "$root" "$1" "$2" "$PWD" "${@:3}"
}

if [ "$mode" = compile ]; then
  [ $# -ge 2 ] || wrong "--compile needs a source and the program's name"
  source=$(realpath "$1") program=$(realpath -m "$2")
  shift 2
  enter none none clang++-$llvm -x hip --offload-arch=gfx90a --offload-arch=gfx942 --offload-arch=gfx950 \
    --rocm-device-lib-path=/usr/lib/llvm-$llvm/lib/clang/$llvm/amdgcn/bitcode -O2 -rdynamic "$source" -o "$program" -L/usr/lib/x86_64-linux-gnu \
    -Wl,--as-needed -lamdhip64 -ldl -pthread "$@"
fi

[ $# -gt 0 ] || wrong "no command after --"
driver=$build/tests/libtacho_kfd.so
[ -e "$driver" ] || driver=$(find "$build" -name libtacho_kfd.so -print -quit 2>/dev/null || true)
[ -n "$driver" ] || wrong "no libtacho_kfd.so under $build: build the target tacho_kfd, or name the folder with --build"
[ "$gpus" != 0 ] || enter none none "$@"
topology=$cache/topology/$gpu-$gpus-$(cksum <"$here/tests/rocm/kfd/topology.py" | cut -d' ' -f1)
if [ ! -e "$topology" ]; then
  mkdir -p "$cache/topology"
  new=$(mktemp -d "$cache/topology/new.XXXXXX")
  "$python" "$here/tests/rocm/kfd/topology.py" "$gpu" "$gpus" "$new" || { rm -rf "$new"; exit 2; }
  chmod 755 "$new"
  mv -T "$new" "$topology" 2>/dev/null || rm -rf "$new"  # somebody else was faster
fi
enter "$topology" "$driver" "$@"
