# test_containers.sh IMAGE: run the tests of containers on IMAGE, or build one first where none is given.
#
# The image and its containers are kept in build/containers, apart from those of podman's user. DOCKER_HOST names the
# Docker or podman that runs a given image. To build one, root is needed.
set -eu
image=$1
home=$PWD/build/containers
tests() { .venv/bin/python -m pytest -v -m container tests/containers ${TEST_ARGS:-}; }

if [ -n "$image" ]; then
  EOS_TEST_IMAGE=$image tests
  exit
fi

missing=
for program in podman crun netavark aardvark-dns mmdebstrap; do
  command -v "$program" > /dev/null || [ -x "/usr/lib/podman/$program" ] || missing="$missing $program"
done
if [ -n "$missing" ]; then
  echo "make test-containers needs$missing. On Debian: apt-get install podman crun netavark aardvark-dns mmdebstrap" >&2
  echo "Where there is a Docker already: make test-containers IMAGE=apachepulsar/pulsar:4.2.4" >&2
  exit 1
fi
if [ "$(id -u)" != 0 ]; then
  echo "make test-containers builds its image as root. It was not tried as another user." >&2
  exit 1
fi
# podman takes the second version of cgroups for the machine's where both are mounted. crun then finds no controllers.
if [ -z "${EOS_OWN_MOUNTS:-}" ]; then
  EOS_OWN_MOUNTS=yes exec unshare --mount sh "$0" ""
fi
if mountpoint -q /sys/fs/cgroup/unified; then umount /sys/fs/cgroup/unified; fi

mkdir -p "$home/context"
cat > "$home/containers.conf" <<END
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=32768:32768"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "crun"
END
cat > "$home/storage.conf" <<END
[storage]
driver = "overlay"
graphroot = "$home/graph"
runroot = "$home/run"
END
export CONTAINERS_CONF="$home/containers.conf" CONTAINERS_STORAGE_CONF="$home/storage.conf"

root=$home/context/root.tar
if [ ! -f "$root" ]; then
  echo "Making a root file system with a JRE: some 200 MB of Debian's packages, some minutes"
  mmdebstrap --quiet --variant=apt --dpkgopt=force-unsafe-io --include=openjdk-17-jre-headless bookworm "$root.unfinished"
  mv "$root.unfinished" "$root"
fi
cp -R tests/containers/image/. "$home/context"
rm -rf "$home/context/lib"
cp -R "$(.venv/bin/python -c 'from eos.local import jars; print(jars.folder())')" "$home/context/lib"
.venv/bin/python -c 'from eos.local.jvm import LOGGING; print(LOGGING)' > "$home/context/conf/log4j2.properties"
image=localhost/eos-pulsar:test
podman build --quiet --isolation=chroot --network=host --tag "$image" "$home/context"

socket=$home/podman.sock
rm -f "$socket"
podman system service --time=0 "unix://$socket" &
service=$!
trap 'kill $service' EXIT
until [ -S "$socket" ]; do sleep 0.2; done
# Ryuk is an image of a registry's. Without it a test that is killed leaves its container. The ports are on this host,
# also where this is a container itself: podman does not tell testcontainers the gateway, which it asks for there.
export DOCKER_HOST="unix://$socket" TESTCONTAINERS_RYUK_DISABLED=true
export TESTCONTAINERS_CONNECTION_MODE=docker_host TESTCONTAINERS_HOST_OVERRIDE=localhost
EOS_TEST_IMAGE=$image tests
