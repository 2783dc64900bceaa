# File systems, network, drivers of the topology's controllers and the shell server of the guest.
set -e
trap '[ $? = 0 ] || echo "LAB FAILED start"' EXIT
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:/bb

mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
mkdir -p /run/lock /dev/pts /dev/shm
mount -t devpts pts /dev/pts
ln -sf /proc/self/fd /dev/fd

modprobe virtio_net
ip link set lo up
ip address add 10.0.2.15/24 dev eth0
ip link set eth0 up

printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n' >/etc/passwd
printf 'root:x:0:\ndisk:x:6:\nnogroup:x:65534:\n' >/etc/group
ln -s /proc/mounts /etc/mtab
hostname lab

modprobe -a nvme ahci sd_mod sg virtio_scsi
modprobe configfs
mount -t tracefs trace /sys/kernel/tracing
mount -t configfs config /sys/kernel/config

# One connection, one shell: a command that hangs blocks no other.
printf '#!/bin/sh\nexec sh 2>&1\n' >/run/shell
chmod +x /run/shell
setsid socat -t 100000 TCP-LISTEN:2222,reuseaddr,fork,backlog=40 EXEC:/run/shell >/dev/null 2>&1 </dev/null &

echo "LAB ready $(cut -d' ' -f1 /proc/uptime)"
