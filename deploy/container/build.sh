#!/bin/sh
# Builds a container image of Logberg as an OCI layout:
#
#     deploy/container/build.sh OUT      writes OUT/oci, tagged with the version, and OUT/root.tar
#
# The base is made from Debian's own packages; no image is pulled. It needs root, and Debian's packages
# mmdebstrap and buildah. Python packages are those of requirements/run.lock, with their hashes.
#
#     SUITE     Debian's release (bookworm). Its Python must be of the same minor version as PYTHON
#     PYTHON    a Python with `requirements/build.lock` installed (.venv/bin/python)
#     SOURCES   a file with apt's sources, if not the ones of SUITE
set -eu

here=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$here/../.." && pwd)
suite=${SUITE:-bookworm}
python=${PYTHON:-$project/.venv/bin/python}
out=${1:?say where to write: build.sh OUT}
user=10001

fail() { echo "build.sh: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "only root can make a root file system; run it with sudo"
for tool in mmdebstrap buildah; do
    command -v "$tool" > /dev/null || fail "$tool is not here; on Debian: apt install $tool"
done
"$python" -c 'import hatchling' || fail "$python has no hatchling; run \`make\` once, or say which PYTHON"
[ ! -e "$out/oci" ] || fail "$out/oci is there already; choose another folder"

mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
SOURCE_DATE_EPOCH=$(git -C "$project" log -1 --format=%ct 2> /dev/null || echo 1700000000)
export SOURCE_DATE_EPOCH
minor=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
version=$("$python" -c 'import sys; sys.path.insert(0, sys.argv[1]); from logberg.version import VERSION; print(VERSION)' "$project")

echo "[1/4] wheels"
"$python" -m pip wheel --quiet --require-hashes --no-build-isolation --use-pep517 \
    -r "$project/requirements/run.lock" -w "$work/wheels"
"$python" -m pip wheel --quiet --no-deps --no-build-isolation -w "$work/wheels" "$project"
# All were checked against their hashes when they were made or fetched.
"$python" -m pip install --quiet --no-deps --no-index --target "$work/packages" "$work"/wheels/*.whl
rm -rf "$work/packages/bin"

echo "[2/4] Debian $suite"
cat > "$work/fill" << EOF
set -eu
root=\$1
got=\$(chroot "\$root" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
[ "\$got" = "$minor" ] || { echo "$suite has Python \$got, and the wheels are for $minor" >&2; exit 1; }
mkdir -p "\$root/usr/local/lib/python$minor/dist-packages"
cp -a "$work/packages/." "\$root/usr/local/lib/python$minor/dist-packages/"
printf 'logberg:x:$user:$user:Logberg:/var/lib/logberg:/usr/sbin/nologin\n' >> "\$root/etc/passwd"
printf 'logberg:x:$user:\n' >> "\$root/etc/group"
install -d -o $user -g $user -m 0700 "\$root/var/lib/logberg"
install -d -m 0755 "\$root/etc/logberg" "\$root/run/logberg"
install -m 0755 "$here/logberg" "$here/logberg-health" "\$root/usr/local/bin/"
rm -rf "\$root"/var/cache/* "\$root"/var/log/* "\$root"/usr/share/doc/*/changelog* "\$root"/var/lib/apt
EOF
chmod +x "$work/fill"
mmdebstrap --quiet --variant=essential --include=python3,ca-certificates,tzdata \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/info/*' \
    --customize-hook="$work/fill" "$suite" "$out/root.tar" ${SOURCES:+"$SOURCES"}

echo "[3/4] image"
# Storage of its own, so that nothing of it stays on this machine.
build() { buildah --root "$work/storage" --runroot "$work/running" --storage-driver vfs "$@"; }
container=$(build from scratch)
build add --quiet "$container" "$out/root.tar" / > /dev/null
build config \
    --user "$user:$user" \
    --workingdir /var/lib/logberg \
    --entrypoint '["/usr/local/bin/logberg"]' \
    --cmd 'controller --config /etc/logberg/controller.toml' \
    --env PATH=/usr/local/bin:/usr/bin:/bin --env PYTHONUNBUFFERED=1 --env PYTHONDONTWRITEBYTECODE=1 --env LANG=C.UTF-8 \
    --volume /var/lib/logberg \
    --port 9091 --port 9191 --port 9291 \
    --stop-signal SIGTERM \
    --label org.opencontainers.image.title=Logberg \
    --label org.opencontainers.image.version="$version" \
    --label org.opencontainers.image.base.name="Debian $suite, made by mmdebstrap" \
    --label logberg.health="/usr/local/bin/logberg-health live" \
    "$container"

echo "[4/4] $out/oci"
build commit --quiet --format oci --disable-compression=false --timestamp "$SOURCE_DATE_EPOCH" "$container" "oci:$out/oci:$version" > /dev/null
build rm "$container" > /dev/null
echo "made $out/oci:$version, $(du -sh "$out/oci" | cut -f1)"
